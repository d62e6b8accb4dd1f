"""The least and greatest values of columns, told from what is known of files.

Those of a table as it is now are kept, and moved forward by what later commits added and removed:
in memory as they were asked for, and in the rows now and then, for processes that begin.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from lakebed.core.domains import less
from lakebed.core.ledger import typing_of
from lakebed.meta import extremes, files, tables
from lakebed.meta.extremes import KeptExtremes
from lakebed.meta.store import Store, Tx
from lakebed.model.files import BOUND_LENGTH, LiveFile, from_plain, to_plain
from lakebed.model.history import TableHead
from lakebed.model.ids import FieldId, TableId, Version
from lakebed.model.types import Field, Primitive, Stored, Type, is_scalar

_TEXTS = (Primitive("string"), Primitive("binary"))
_FLOATS = (Primitive("float"), Primitive("double"))
_MOST_KEPT = 10_000
OFTEN = 64  # files or versions, after which the rows are brought up to date
_FEW = 20_000  # live files that are looked at again when one that decided is gone
_PAGE = 5_000


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

    def keep_up(self, table_id: TableId) -> None:
        """Bring the rows up to date, if much has happened since they were."""
        with self._store.read() as tx:
            head = tables.get_table(tx, table_id)
            if head is None:
                return
            kept = extremes.get_extremes(tx, table_id)
            if kept is None and head.live_files < OFTEN:
                return
            if kept is not None and not _is_old(kept, head):
                return
            schema = tables.get_state(tx, table_id, head.state_id).schema
            wanted = [f for f in schema.fields if is_scalar(f.type) and f.initial_default is None]
            body = _Seen(tx, head).body(wanted)
        # Lost with the machine's power it is made again.
        with self._store.write(durable=False) as tx:
            if tables.get_table(tx, table_id) is not None:
                extremes.put_extremes(tx, head, body)

    def _current(self, seen: "_Seen", field: Field, *, greatest: bool) -> _Kept:
        key = (seen.head.id, field.id, greatest)
        with self._lock:
            before = self._kept.get(key)
        if before is not None and before.version == seen.head.version:
            return before
        if before is None:
            before = seen.stored(field, greatest=greatest)
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
        self._stored: dict[tuple[int, bool], _Kept] | None = None
        self._changes: dict[Version, tuple[list[LiveFile], list[LiveFile]]] = {}

    def stored(self, field: Field, *, greatest: bool) -> _Kept | None:
        """As the rows have it, of the version they were brought up to."""
        if self._stored is None:
            row = extremes.get_extremes(self._tx, self.head.id)
            types = typing_of(self._tx, self.head.id).leaves if row else {}
            self._stored = _from_body(row, types) if row else {}
        return self._stored.get((field.id, greatest))

    def body(self, wanted: Sequence[Field]) -> list[list[Any]]:
        """All that is known of some columns now; what only all files could tell is left out."""
        sides = [(f, greatest) for f in wanted for greatest in (False, True)]
        found: dict[tuple[FieldId, bool], _Kept] = {}
        for field, greatest in sides:
            before = self.stored(field, greatest=greatest)
            now = before and self.moved(before, field, greatest=greatest)
            if now is not None:
                found[field.id, greatest] = now
        missing = [(f, greatest) for f, greatest in sides if (f.id, greatest) not in found]
        if missing and (not self._stored or self.head.live_files <= _FEW):
            found |= self._paged(missing)
        return [_to_entry(key, kept) for key, kept in found.items()]

    def _paged(self, sides: list[tuple[Field, bool]]) -> dict[tuple[FieldId, bool], _Kept]:
        """What all files tell, of which some are in memory at a time."""
        head, typing = self.head, typing_of(self._tx, self.head.id)
        best: dict[tuple[FieldId, bool], Extreme | None] = {(f.id, g): None for f, g in sides}
        for first in range(0, head.next_file_id, _PAGE):
            run = (first, first + _PAGE - 1)
            live = files.files_in_run(
                self._tx, head.id, head.version, typing, first=run[0], last=run[1]
            )
            for field, greatest in sides:
                key = (field.id, greatest)
                try:
                    if key in best:
                        best[key] = _best(best[key], live, field, greatest=greatest)
                except Unknown:
                    del best[key]
        known = (head.version, head.live_files, head.live_rows)
        return {
            (f.id, g): _Kept(*known, best.get((f.id, g)), is_known=(f.id, g) in best)
            for f, g in sides
        }

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


def _is_old(kept: KeptExtremes, head: TableHead) -> bool:
    after = max(head.version - kept.version, head.next_file_id - kept.next_file_id)
    return after >= OFTEN


def _to_entry(key: tuple[FieldId, bool], kept: _Kept) -> list[Any]:
    best = kept.best
    value = [] if best is None else [to_plain(best.value), best.is_exact]
    return [*key, kept.is_known, *value]


def _from_body(row: KeptExtremes, types: Mapping[int, Type]) -> dict[tuple[int, bool], _Kept]:
    found = {}
    for field_id, greatest, is_known, *told in row.body:
        value = from_plain(types[field_id], told[0]) if told else None
        best = None if value is None else Extreme(value, told[1])
        found[field_id, greatest] = _Kept(
            row.version, row.live_files, row.live_rows, best, is_known
        )
    return found


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
