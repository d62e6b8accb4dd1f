"""The least and greatest values of columns, told from what is known of files.

Those of a table as it is now are kept, and moved forward by what later commits added and removed.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock

from lakebed.core.domains import less
from lakebed.core.ledger import typing_of
from lakebed.meta import files, tables
from lakebed.meta.store import Store, Tx
from lakebed.model.files import BOUND_LENGTH, LiveFile
from lakebed.model.history import TableHead
from lakebed.model.ids import FieldId, TableId, Version
from lakebed.model.types import Field, Primitive, Stored, is_scalar

_TEXTS = (Primitive("string"), Primitive("binary"))
_FLOATS = (Primitive("float"), Primitive("double"))
_MOST_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Extreme:
    """A bound, and whether a row that is still there surely has exactly that value."""

    value: Stored
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    column: str
    greatest: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """Values in the order they were asked for; None where all rows are null."""

    rows: int
    found: list[tuple[Field, Stored | None]]


class Unknown(Exception):
    """The files do not tell; the rows must be read."""


def extreme_of(live: Iterable[LiveFile], field: Field, *, greatest: bool) -> Stored | None:
    """None if there are no values; Unknown if only the rows can tell."""
    if field.initial_default is not None:
        raise Unknown
    return _settled(_best(None, live, field, greatest=greatest))


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the files of a version told; the counts must fit those of the version it moves to."""

    version: Version
    files: int
    rows: int
    best: Extreme | None
    is_known: bool = True

    @property
    def value(self) -> Stored | None:
        if not self.is_known:
            raise Unknown
        return _settled(self.best)


class Extremes:
    """Of tables as main has them now. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._kept: dict[tuple[TableId, FieldId, bool], _Kept] = {}

    def find(self, table_id: TableId, wanted: Sequence[Wanted]) -> Answer | None:
        """None when the rows must be read."""
        with self._store.read() as tx:
            head = tables.get_table(tx, table_id)
            if head is None:
                return None
            schema = tables.get_state(tx, table_id, head.state_id).schema
            seen = _Seen(tx, head)
            found: list[tuple[Field, Stored | None]] = []
            for each in wanted:
                field = schema.find((each.column,))
                if field is None or not is_scalar(field.type) or field.initial_default is not None:
                    return None
                try:
                    kept = self._current(seen, field, greatest=each.greatest)
                    found.append((field, kept.value))
                except Unknown:
                    return None
            return Answer(head.live_rows, found)

    def _current(self, seen: "_Seen", field: Field, *, greatest: bool) -> _Kept:
        key = (seen.head.id, field.id, greatest)
        with self._lock:
            before = self._kept.get(key)
        if before is not None and before.version == seen.head.version:
            return before
        now = None if before is None else seen.moved(before, field, greatest=greatest)
        now = now or seen.counted(field, greatest=greatest)
        with self._lock:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = now
        return now


class _Seen:
    """A table's files in one view of the rows, each asked for once."""

    def __init__(self, tx: Tx, head: TableHead) -> None:
        self.head = head
        self._tx = tx
        self._live: list[LiveFile] | None = None
        self._changes: dict[Version, tuple[list[LiveFile], list[LiveFile]]] = {}

    def counted(self, field: Field, *, greatest: bool) -> _Kept:
        if self._live is None:
            typing = typing_of(self._tx, self.head.id)
            self._live = files.live_files(self._tx, self.head.id, typing)
        head, live = self.head, self._live
        try:
            best = _best(None, live, field, greatest=greatest)
        except Unknown:
            return _Kept(head.version, len(live), head.live_rows, None, is_known=False)
        return _Kept(head.version, len(live), head.live_rows, best)

    def moved(self, before: _Kept, field: Field, *, greatest: bool) -> _Kept | None:
        """None if what is gone may have decided, or not all that happened is known any more."""
        removed, added = self._since(before.version)
        rows = before.rows + sum(f.rows for f in added) - sum(f.rows for f in removed)
        counted = before.files + len(added) - len(removed)
        if (counted, rows) != (self.head.live_files, self.head.live_rows):
            return None
        if removed and not before.is_known:
            return None
        best = before.best
        try:
            for gone in removed:
                bound = _bound(gone, field, greatest=greatest) if gone.rows else None
                if bound is not None and (best is None or bound.value == best.value):
                    return None
            if before.is_known:
                best = _best(best, added, field, greatest=greatest)
        except Unknown:
            return None
        return _Kept(self.head.version, counted, rows, best, before.is_known)

    def _since(self, version: Version) -> tuple[list[LiveFile], list[LiveFile]]:
        if version not in self._changes:
            typing = typing_of(self._tx, self.head.id)
            removed = files.shown_until(self._tx, self.head.id, version, typing)
            added = files.shown_since(self._tx, self.head.id, version, typing)
            self._changes[version] = removed, added
        return self._changes[version]


def _settled(best: Extreme | None) -> Stored | None:
    if best is not None and not best.is_exact:
        raise Unknown
    return None if best is None else best.value


def _best(
    best: Extreme | None, live: Iterable[LiveFile], field: Field, *, greatest: bool
) -> Extreme | None:
    for each in live:
        bound = _bound(each, field, greatest=greatest) if each.rows else None
        if bound is not None and (best is None or _beats(bound, best, greatest=greatest)):
            best = bound
    return best


def _beats(bound: Extreme, best: Extreme, *, greatest: bool) -> bool:
    if bound.value == best.value:
        return bound.is_exact
    low, high = (best, bound) if greatest else (bound, best)
    return less(low.value, high.value)


def _bound(live: LiveFile, field: Field, *, greatest: bool) -> Extreme | None:
    """None: the file holds nothing but nulls."""
    stats = live.file.stats.get(field.id)
    if stats is None:
        raise Unknown
    if stats.null_count == live.file.record_count:
        return None
    value = stats.upper if greatest else stats.lower
    # NaN is above all numbers for the engine, and in no bound.
    if value is None or (field.type in _FLOATS and stats.nan_count != 0):
        raise Unknown
    if isinstance(value, float) and (math.isnan(value) or value == 0):
        raise Unknown  # the two zeros are one value in bounds
    cut = field.type in _TEXTS and isinstance(value, str | bytes) and len(value) >= BOUND_LENGTH
    return Extreme(value, not cut and live.vector is None)
