"""Files in the user's cache: what is fetched or made once for Spark."""

import tempfile
from pathlib import Path

from lakebed.model.errors import StorageError


def put_whole(content: bytes, path: Path, *, mode: int = 0o644) -> None:
    """Renamed when whole: another process may be reading or writing the same file."""
    made = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as partial:
            made = Path(partial.name)
            partial.write(content)
        made.chmod(mode)
        made.replace(path)
    except OSError as error:
        if made is not None:
            made.unlink(missing_ok=True)
        raise StorageError(
            f"cannot keep {path.name} in {path.parent}: {error.strerror or error}",
            hint="make room there, or name another folder as XDG_CACHE_HOME",
        ) from error
