"""How far a reader of a stream has come; it is kept by the reader, as plain JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

Plain = dict[str, int | bool | str]


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a stream was read: everything up to a version, or a part of what it brought."""

    version: int
    files: int = 0  # not all of the version: so many of the files that it added, or that it has
    snapshot: bool = False  # the table as a whole comes first, and is not all read
    since: int | None = None  # where a stream began that was not told a version
    table: str | None = None  # its uuid: another table may get the name

    def to_plain(self) -> Plain:
        plain: Plain = {"version": self.version}
        if self.files:
            plain["files"] = self.files
        if self.snapshot:
            plain["snapshot"] = True
        if self.since is not None:
            plain["since"] = self.since
        if self.table is not None:
            plain["table"] = self.table
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, int | bool | str]) -> Self:
        since, table = plain.get("since"), plain.get("table")
        return cls(
            int(plain["version"]),
            int(plain.get("files", 0)),
            bool(plain.get("snapshot", False)),
            None if since is None else int(since),
            None if table is None else str(table),
        )
