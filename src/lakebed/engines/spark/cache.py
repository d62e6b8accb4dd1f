"""The folder of the user's that holds what is fetched or made once for Spark."""

import os
import tempfile
from pathlib import Path


def cache_folder(part: str) -> Path:
    """Made if it is not there yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "lakebed" / part
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def put_whole(content: bytes, path: Path, *, mode: int = 0o644) -> None:
    """Renamed when whole: another process may be reading or writing the same file."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as partial:
        partial.write(content)
    made = Path(partial.name)
    made.chmod(mode)
    made.replace(path)
