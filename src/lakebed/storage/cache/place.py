"""Which folder the cache is in, when none is named."""

import os
from pathlib import Path


def user_cache(part: str) -> Path:
    """A folder for what can be had again, below XDG_CACHE_HOME or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lakebed" / part
