"""The names that a function's code reads from outside itself, and what it reads of them.

    lambda u, x: cfg.nu * np.linalg.norm(x) + f(x)      {"cfg": [("nu",)], "np": [("linalg", "norm")], "f": [()]}

From the bytecode, of nested functions too: an instruction with a name that is no attribute is a global's (or a
builtin's), one that reads a cell is a closure's, and the attributes that are read of it follow at once.
"""

import dis
import functools
import types
from collections.abc import Iterator

ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
OTHER_ATTRIBUTES = {"STORE_ATTR", "DELETE_ATTR", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD", "IMPORT_FROM"}
FORBIDDEN = {"STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME"}
STORES = {"STORE_NAME", "DELETE_NAME"}  # in the body of a class


@functools.lru_cache(maxsize=1024)
def names(code: types.CodeType) -> dict[str, list[tuple[str, ...]]] | None:
    """Each name with the chains of attributes that are read of it; None where the code imports or sets globals."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for part in _nested(code):
        instructions = [i for i in dis.get_instructions(part) if i.opname not in ("EXTENDED_ARG", "CACHE")]
        for place, instruction in enumerate(instructions):
            name = instruction.opname
            if name in FORBIDDEN:
                return None
            cell = instruction.opcode in dis.hasfree and not name.startswith(("STORE", "DELETE"))
            outer = instruction.opcode in dis.hasname and name not in ATTRIBUTES | OTHER_ATTRIBUTES | STORES
            if cell or outer:
                chain = []
                for later in instructions[place + 1 :]:
                    if later.opname not in ATTRIBUTES:
                        break
                    chain.append(str(later.argval))
                found.setdefault(str(instruction.argval), set()).add(tuple(chain))
    return {name: sorted(chains) for name, chains in found.items()}


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)
