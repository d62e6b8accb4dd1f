"""One DuckDB in memory: within limits, and once locked, with some folders to read and no others."""

import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import duckdb

from lakebed.model.errors import InvalidSetting
from lakebed.model.quoting import text_literal


@dataclass(frozen=True, slots=True)
class Limits:
    memory_bytes: int | None  # None: half of the machine's
    spill_folder: str | None  # None: the system's temporary folder
    threads: int | None = None  # None: one per core


class Instance:
    """Temporary tables, views and variables, and rows that are bound, belong to one connection."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.folders: frozenset[str] | None = None  # None: not locked yet
        self.typed = set[object]()  # relations whose files were seen to have the table's types
        self._spill = _spill_folder(limits) / f"lakebed-{uuid4().hex}"
        self._first = duckdb.connect(config=_config(limits, self._spill))
        self._first.execute("SET GLOBAL TimeZone = 'UTC'")

    @property
    def has_spilled(self) -> bool:
        return self._spill.exists()

    def connect(self) -> duckdb.DuckDBPyConnection:
        return self._first.cursor()

    def lock(self, folders: Iterable[str]) -> None:
        """From now on nothing but these folders is read, and no setting changes."""
        self.folders = frozenset(folders)
        listed = ", ".join(text_literal(f"{folder}/") for folder in sorted(self.folders))
        self._first.execute(f"SET allowed_directories = [{listed}]")
        self._first.execute("SET enable_external_access = false")
        self._first.execute("SET lock_configuration = true")

    def close(self) -> None:
        self._first.close()
        shutil.rmtree(self._spill, ignore_errors=True)


def _spill_folder(limits: Limits) -> Path:
    if limits.spill_folder is None:
        return Path(tempfile.gettempdir())
    folder = Path(limits.spill_folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidSetting(
            f"there is no folder {limits.spill_folder!r} and it cannot be made: {error.strerror}",
            hint="set query.spill-folder to a folder that can be written",
        ) from error
    return folder


def _config(limits: Limits, spill: Path) -> dict[str, str | bool | int | float | list[str]]:
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{limits.memory_bytes}B" if limits.memory_bytes else "50%",
        "temp_directory": str(spill),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "python_enable_replacements": False,
        "ieee_floating_point_ops": False,  # a division by zero is an error, for floats too
        "enable_external_file_cache": False,  # it would keep the rows of idle instances in memory
    }
    if limits.threads is not None:
        config["threads"] = limits.threads
    return config
