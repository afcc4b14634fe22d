"""Text between two markers of a page: `<!-- NAME: made by MODULE -->` and `<!-- NAME: end -->`, once each."""

import re
from collections.abc import Mapping


def filled(text: str, module: str, made: Mapping[str, str]) -> str:
    """The page with what was made, by name, between the markers."""
    for name, new in made.items():
        begin, end = f"<!-- {name}: made by {module} -->", f"<!-- {name}: end -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"a page must have the line {begin} and then {end}, once each")
        between = f"{begin}\n\n{new}\n\n{end}"
        text = re.sub(f"{begin}.*?{end}", lambda _, between=between: between, text, flags=re.DOTALL)
    return text
