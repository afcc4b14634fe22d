"""The weight of a residual block as a user writes it: a number, or "auto" (`natgrad.optim.balance` finds it)."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from natgrad.options import Positive

Weight = Positive | Literal["auto"]
Noise = Positive | Annotated[Any, "an array of one for each point"] | None


def number(weight: float | str) -> float:
    """The weight itself, 1 where it is yet to be found."""
    return 1.0 if isinstance(weight, str) else weight


def balanced(weights: Any, blocks: Mapping[str, Any]) -> tuple[str, ...]:
    """The blocks to be balanced. Where all are, the first keeps 1: the loss is then in the units of its residual."""
    if weights is not None and not (isinstance(weights, str) and weights == "auto"):
        got = weights if isinstance(weights, str | int | float) else type(weights).__name__
        raise ValueError(f'weights is "auto" or left out, got {got!r}: a block\'s own is ng.Residual(…, weight=10)')
    names = [name for name, block in blocks.items() if weights == "auto" or block.weight == "auto"]
    own = [name for name, block in blocks.items() if block.weight not in ("auto", 1.0) or block.observed]
    if weights == "auto" and own:
        has = "a noise level" if blocks[own[0]].observed else f"the weight {blocks[own[0]].weight:g}"
        raise ValueError(
            f'weights="auto" balances all blocks, and {own[0]!r} has {has}: leave one out, or give weight="auto" to '
            "the blocks to be balanced"
        )
    if names and len(blocks) == 1:
        raise ValueError(f'the block {names[0]!r} has nothing to be balanced against: "auto" needs two blocks or more')
    return tuple(names[1:] if len(names) == len(blocks) else names)
