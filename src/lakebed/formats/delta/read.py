"""Replay a `_delta_log`, whoever wrote it: the newest checkpoint, then the commits after it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import orjson

from lakebed.formats.delta.actions import (
    Action,
    AddAction,
    CdcAction,
    CommitInfo,
    DeletionVector,
    MetadataAction,
    ProtocolAction,
    RemoveAction,
    SidecarAction,
    TxnAction,
    from_plain,
)
from lakebed.formats.delta.checkpoint import read_checkpoint
from lakebed.formats.delta.log import FOLDER, SIDECARS, LogListing, list_log
from lakebed.model.errors import DataCorrupt, ObjectMissing, VersionNotFound
from lakebed.model.ids import Version
from lakebed.storage.base import Storage


@dataclass(frozen=True, slots=True)
class DeltaSnapshot:
    """What a Delta reader sees at a version. `timestamps` are those of the commits replayed."""

    version: Version
    protocol: ProtocolAction
    metadata: MetadataAction
    files: Mapping[str, AddAction]
    txns: Mapping[str, TxnAction]
    timestamps: Mapping[Version, int]


def read_snapshot(storage: Storage, root: str, version: int | None = None) -> DeltaSnapshot:
    """The table at a version, by default the newest; DataCorrupt for a log with gaps or damage."""
    log = list_log(storage, root)
    wanted = _wanted(log, root, version)
    base = max((v for v in log.checkpoints if v <= wanted), default=None)
    commits = range(0 if base is None else base + 1, wanted + 1)
    _check_complete(log, root, commits)
    replay = _Replay()
    if base is not None:
        for path in log.checkpoints[base]:
            replay.apply_all(_checkpoint(storage, root, path))
    for number in map(Version, commits):
        stat = log.commits[number]
        replay.timestamps[number] = stat.modified_ms
        replay.apply_all(read_actions(storage, stat.path), number)
    return replay.snapshot(root, wanted)


def read_actions(storage: Storage, path: str) -> Iterator[Action]:
    """The actions of one file of JSON lines."""
    for number, line in enumerate(storage.get(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            members = orjson.loads(line)
            if not isinstance(members, dict):
                raise ValueError("not an object")  # noqa: TRY004 - data, not code
            actions = [from_plain(name, plain) for name, plain in members.items()]
        except ValueError as error:
            raise DataCorrupt(
                f"{path!r}, line {number}, is not a Delta action: {error}",
                hint="`lakebed check` says whether the rows still know what belongs there",
                path=path,
                line=number,
            ) from error
        yield from (action for action in actions if action is not None)


def _wanted(log: LogListing, root: str, version: int | None) -> Version:
    newest = max((*log.commits, *log.checkpoints), default=None)
    if newest is None:
        raise ObjectMissing(
            f"{root!r} holds no Delta table: its {FOLDER} is empty or missing",
            hint="give the folder that contains _delta_log",
            path=f"{root}/{FOLDER}",
        )
    if version is not None and not 0 <= version <= newest:
        raise VersionNotFound(
            f"the Delta log of {root!r} has no version {version}",
            hint=f"its newest version is {newest}",
            version=version,
        )
    return newest if version is None else Version(version)


def _check_complete(log: LogListing, root: str, commits: range) -> None:
    missing = [v for v in commits if v not in log.commits]
    if not missing:
        return
    cleaned = any(v >= missing[-1] for v in log.checkpoints)
    if cleaned and missing == list(range(missing[-1] + 1)):
        raise VersionNotFound(
            f"the Delta log of {root!r} no longer reaches back to version {commits[-1]}",
            hint=f"its oldest readable version is {min(log.checkpoints)}",
            version=commits[-1],
        )
    raise DataCorrupt(
        f"the Delta log of {root!r} has a gap: version {missing[0]} is missing",
        hint="put the missing file back, or publish the table again from the rows",
        version=missing[0],
    )


def _checkpoint(storage: Storage, root: str, path: str) -> Iterator[Action]:
    whole = f"{root}/{path}"
    read = read_actions if path.endswith(".json") else read_checkpoint
    for action in read(storage, whole):
        if isinstance(action, SidecarAction):
            yield from read_checkpoint(storage, f"{root}/{SIDECARS}/{action.path}")
        else:
            yield action


@dataclass(slots=True)
class _Replay:
    protocol: ProtocolAction | None = None
    metadata: MetadataAction | None = None
    # A file may be removed with one deletion vector and added with another in the same commit.
    files: dict[tuple[str, str], AddAction] = field(default_factory=dict)
    txns: dict[str, TxnAction] = field(default_factory=dict)
    timestamps: dict[Version, int] = field(default_factory=dict)

    def apply_all(self, actions: Iterator[Action], version: Version | None = None) -> None:
        for action in actions:
            match action:
                case ProtocolAction():
                    self.protocol = action
                case MetadataAction():
                    self.metadata = action
                case TxnAction():
                    self.txns[action.app_id] = action
                case AddAction():
                    self.files[_key(action.path, action.deletion_vector)] = action
                case RemoveAction():
                    self.files.pop(_key(action.path, action.deletion_vector), None)
                case CommitInfo() if version is not None:
                    time_ms = action.in_commit_ms or action.time_ms
                    if time_ms is not None:
                        self.timestamps[version] = time_ms
                case CommitInfo() | CdcAction() | SidecarAction():
                    pass

    def snapshot(self, root: str, version: Version) -> DeltaSnapshot:
        if self.protocol is None or self.metadata is None:
            raise DataCorrupt(
                f"the Delta log of {root!r} has no protocol or no metadata at version {version}",
                hint="publish the table again from the rows",
                version=version,
            )
        files = {add.path: add for add in self.files.values()}
        return DeltaSnapshot(
            version, self.protocol, self.metadata, files, self.txns, self.timestamps
        )


def _key(path: str, vector: DeletionVector | None) -> tuple[str, str]:
    return path, vector.unique_id if vector else ""
