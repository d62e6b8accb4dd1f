"""A moment of a table: a version or a time of one of its lines, or what a ref names."""

from dataclasses import dataclass
from datetime import datetime

from lakebed.api.options import check_number
from lakebed.api.parts import Parts
from lakebed.api.scan import to_time_ms
from lakebed.model.errors import InvalidInput
from lakebed.model.history import TAG, CommitRecord, TableHead


@dataclass(frozen=True, slots=True)
class Point:
    """Nothing given: the newest version of main."""

    version: int | None = None
    time_ms: int | None = None
    ref: str | None = None

    def head(self, parts: Parts, main: TableHead) -> TableHead:
        """The line as it is now; of a tag, as it was at its version."""
        if self.ref is None:
            return main
        moves = self.version is not None or self.time_ms is not None
        if moves and parts.refs.find(main, self.ref).kind == TAG:
            raise InvalidInput(
                f"tag {self.ref} is one version: it has no other versions and times",
                hint="leave out the tag, or the version",
            )
        return parts.refs.on_ref(main, self.ref)

    def commit(self, parts: Parts, head: TableHead) -> CommitRecord:
        """`head` is that of the point's line."""
        return parts.catalog.resolve(head, version=self.version, time_ms=self.time_ms)


def to_point(
    version: int | None = None,
    timestamp: datetime | str | int | None = None,
    ref: str | None = None,
) -> Point:
    if version is not None:
        check_number("version", version)
    if ref is not None and not isinstance(ref, str):
        raise InvalidInput(f"ref {ref!r} is no name", hint="give the name of a branch or tag")
    if version is not None and timestamp is not None:
        raise InvalidInput("give a version or a timestamp, not both", hint="leave one out")
    return Point(version, None if timestamp is None else to_time_ms(timestamp), ref)
