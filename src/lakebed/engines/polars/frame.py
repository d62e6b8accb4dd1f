"""A plan as a lazy frame: Polars hands down columns and filters when the frame is collected."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa
from polars.exceptions import PolarsError
from polars.io.plugins import register_io_source

from lakebed.core.lease import Hold, leased
from lakebed.core.plan import Plan
from lakebed.core.prune import narrowed
from lakebed.engines.arrow.pushed import weaker_predicate
from lakebed.engines.arrow.read import read
from lakebed.engines.polars.native import frame_schema, native_files, native_frames
from lakebed.engines.polars.predicate import to_expression
from lakebed.engines.polars.terms import term_of
from lakebed.model.errors import UnsupportedFeature
from lakebed.model.expressions import And, Predicate, columns
from lakebed.model.files import LiveFile
from lakebed.model.types import Field
from lakebed.storage.base import Storage

_log = logging.getLogger("lakebed.engines")


def lazy_frame(plan: Plan, storage: Storage, hold: Hold) -> pl.LazyFrame:
    """The plan's rows in no promised order; the lease lives while they are collected."""
    if not plan.columns:
        raise UnsupportedFeature(
            "a frame of Polars without columns has no rows", hint="ask for one column at least"
        )

    def source(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        _batch_rows: int | None,
    ) -> Iterator[pl.DataFrame]:
        wanted = plan if with_columns is None else replace(plan, columns=tuple(with_columns))
        return _first(leased(hold, _Reading(wanted, storage, predicate, n_rows).frames()), n_rows)

    return register_io_source(source, schema=frame_schema(_fields(plan)), is_pure=True)


def whole_frame(rows: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(rows)


@dataclass(frozen=True, slots=True)
class _Reading:
    plan: Plan
    storage: Storage
    filter: pl.Expr | None  # beside the plan's predicate
    most: int | None  # rows; more do no harm

    def frames(self) -> Iterator[pl.DataFrame]:
        """What Polars reads by itself first: whole files, then those with deleted rows."""
        known = self._known()
        plan = self.plan if known is None else narrowed(self.plan, known)
        needed = _fields(plan, self._compared())
        whole: list[LiveFile] = []
        losing: list[LiveFile] = []
        others: list[LiveFile] = []
        for live, native in zip(plan.files, native_files(plan, self.storage, needed), strict=True):
            (others if not native else losing if live.id in plan.deleted else whole).append(live)
        for files in (whole, losing):
            yield from self._natively(_over(plan, files), needed, known)
        yield from self._by_arrow(_over(plan, others), known)

    def _natively(
        self, plan: Plan, needed: tuple[Field, ...], known: Predicate | None
    ) -> Iterator[pl.DataFrame]:
        if not plan.files:
            return
        given = 0
        try:
            for frame in native_frames(plan, self.storage, needed, self._condition(), self.most):
                given += frame.height
                yield frame
        except (PolarsError, OSError) as error:
            # A file of another writer, or a damaged one: the Arrow reader reads it or says why
            # not. Both keep the order, so the rows that were given are its first ones.
            _log.info("read by Arrow instead: %s", error)
            for frame in self._by_arrow(plan, known):
                yield frame.slice(given)
                given = max(0, given - frame.height)

    def _by_arrow(self, plan: Plan, known: Predicate | None) -> Iterator[pl.DataFrame]:
        """`known` leaves out row groups; the filter is applied all the same."""
        names = plan.columns
        both = [each for each in (plan.predicate, known) if each is not None]
        needed = tuple(field.name for field in _fields(plan, self._compared()))
        plan = replace(plan, columns=needed, predicate=And(tuple(both)) if both else None)
        for batch in read(plan, self.storage):
            frame = pl.DataFrame(batch)
            yield (frame if self.filter is None else frame.filter(self.filter)).select(names)

    def _known(self) -> Predicate | None:
        if self.filter is None:
            return None
        return weaker_predicate(term_of(self.filter), self.plan.schema)

    def _compared(self) -> set[str]:
        """Columns that the filters look at."""
        predicate = self.plan.predicate
        ours = set() if predicate is None else {column.path[0] for column in columns(predicate)}
        return ours.union(() if self.filter is None else self.filter.meta.root_names())

    def _condition(self) -> pl.Expr | None:
        if self.plan.predicate is None:
            return self.filter
        ours = to_expression(self.plan.predicate)
        return ours if self.filter is None else ours & self.filter


def _fields(plan: Plan, compared: Iterable[str] = ()) -> tuple[Field, ...]:
    """The plan's columns, then others that are compared."""
    by_name = {field.name: field for field in plan.schema.fields}
    names = dict.fromkeys((*plan.columns, *sorted(compared)))
    return tuple(by_name[name] for name in names)


def _over(plan: Plan, files: list[LiveFile]) -> Plan:
    deleted = {f.id: plan.deleted[f.id] for f in files if f.id in plan.deleted}
    return replace(plan, files=tuple(files), deleted=deleted)


def _first(frames: Iterator[pl.DataFrame], rows: int | None) -> Iterator[pl.DataFrame]:
    for frame in frames:
        yield frame if rows is None else frame.head(rows)
        if rows is not None:
            rows -= frame.height
            if rows <= 0:
                return
