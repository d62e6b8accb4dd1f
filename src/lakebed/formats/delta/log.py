"""The names in a `_delta_log`, and what a listing of it holds."""

import re
from dataclasses import dataclass

from lakebed.model.ids import Version
from lakebed.storage.base import Stat, Storage

FOLDER = "_delta_log"
LAST_CHECKPOINT = f"{FOLDER}/_last_checkpoint"
SIDECARS = f"{FOLDER}/_sidecars"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<uuid>[0-9a-fA-F-]{36}))?\.(?:parquet|json)"
)


@dataclass(frozen=True, slots=True)
class LogListing:
    """The commits by version, and every complete checkpoint as the files it consists of."""

    commits: dict[Version, Stat]
    checkpoints: dict[Version, tuple[str, ...]]


def commit_path(version: Version) -> str:
    """Relative to the table's root, like all paths here."""
    return f"{FOLDER}/{version:020}.json"


def checkpoint_path(version: Version) -> str:
    return f"{FOLDER}/{version:020}.checkpoint.parquet"


def list_log(storage: Storage, root: str) -> LogListing:
    commits: dict[Version, Stat] = {}
    checkpoints: dict[Version, tuple[str, ...]] = {}
    parts: dict[tuple[Version, int], list[str]] = {}
    for stat in storage.list(f"{root}/{FOLDER}"):
        path = stat.path.removeprefix(f"{root}/")
        name = path.removeprefix(f"{FOLDER}/")
        if commit := _COMMIT.fullmatch(name):
            commits[Version(int(commit[1]))] = stat
        elif found := _CHECKPOINT.fullmatch(name):
            version = Version(int(found[1]))
            if found["parts"] is None:
                checkpoints[version] = (path,)
            else:
                parts.setdefault((version, int(found["parts"])), []).append(path)
    for (version, total), paths in parts.items():
        if len(paths) == total:
            checkpoints.setdefault(version, tuple(paths))
    return LogListing(commits, checkpoints)


def log_versions(storage: Storage, root: str) -> list[Version]:
    """The versions that have a commit file, oldest first; nothing is read."""
    return sorted(list_log(storage, root).commits)
