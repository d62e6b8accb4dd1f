"""Did you mean …? Names that are close, whatever their case."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> list[str]:
    """The known names that are closest to this one, the best first."""
    written: dict[str, str] = {}
    for each in known:
        written.setdefault(each.casefold(), each)
    close = difflib.get_close_matches(name.casefold(), written, n=most, cutoff=cutoff)
    return [written[each] for each in close]
