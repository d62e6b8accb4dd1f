"""A DataFrame of Spark as rows of a table: its executors write them, under a lease of ours."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.api.engine_rows import EngineRows
from lakebed.api.parts import Parts
from lakebed.api.writing import write_options
from lakebed.core.lease import LeaseKeeper
from lakebed.model.errors import LakebedError, UnsupportedFeature
from lakebed.model.expressions import Predicate
from lakebed.model.files import DataFile
from lakebed.model.history import TableHead, TableState
from lakebed.model.types import Primitive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakebed.engines.spark.bench import Bench

UTC = ("UTC", "Etc/UTC", "Z", "+00:00")
_BEAT_S = 1.0


@dataclass(frozen=True, slots=True)
class SparkRows(EngineRows):
    """`must_match` is a condition in Spark's SQL, in place of the one that `write` is given.

    With `rounds` decimals may become the nearest float, as in SQL.
    """

    bench: "Bench"
    frame: "DataFrame"
    lineage: bool = False
    must_match: str | None = None
    rounds: bool = False

    @property
    def arrow_schema(self) -> pa.Schema:
        return self.bench.arrow_schema(self.frame)

    def write(
        self,
        parts: Parts,
        head: TableHead,
        state: TableState,
        must_match: Predicate | None = None,
    ) -> list[DataFile]:
        checks = _checks(state)
        if self.bench.session.conf.get("spark.sql.session.timeZone") not in UTC:
            _refuse_local(state, checks)
        prefix = uuid.uuid4().hex
        with _lease(parts, head, prefix):
            return self.bench.write(
                self.frame,
                root=head.location,
                schema=state.schema,
                spec=state.spec,
                sort_order=state.sort_order,
                options=write_options(parts.settings, state),
                name_prefix=prefix,
                lineage=self.lineage,
                checks=checks,
                must_match=self.must_match or must_match,
                rounds=self.rounds,
            )


def _checks(state: TableState) -> dict[str, str]:
    found = {}
    for name, constraint in state.constraints.items():
        if constraint.spark is None:
            raise UnsupportedFeature(
                f"constraint {name!r} means nothing, or something else, in Spark's SQL:"
                f" {constraint.sql}",
                hint="write the rows with the table's own methods, or say the constraint in plainer"
                " words",
                constraint=name,
            )
        found[name] = constraint.spark
    return found


def _refuse_local(state: TableState, checks: Mapping[str, str]) -> None:
    """A text beside a timestamp is UTC here, and of the session's zone there."""
    if not any(field.type == Primitive("timestamp") for field in state.schema.walk()):
        return
    for name, condition in checks.items():
        if "'" in condition:
            raise UnsupportedFeature(
                f"constraint {name!r} may compare times, which the time zone of this session would"
                f" change: {condition}",
                hint='sp.session.conf.set("spark.sql.session.timeZone", "UTC")',
                constraint=name,
            )


@contextmanager
def _lease(parts: Parts, head: TableHead, prefix: str) -> Iterator[None]:
    """Renewed by a thread: this one waits for Spark."""
    if head.id < 0:
        yield
        return
    with parts.leases.writing(head.id, prefix) as lease:
        over, failures = Event(), list[LakebedError]()
        beat = Thread(target=_beat, args=(lease, over, failures), daemon=True)
        beat.start()
        try:
            yield
        finally:
            over.set()
            beat.join()
        if failures:
            raise failures[0]  # maintenance may have taken the files away


def _beat(lease: LeaseKeeper, over: Event, failures: list[LakebedError]) -> None:
    while not over.wait(_BEAT_S):
        try:
            lease.touch()
        except LakebedError as error:
            failures.append(error)
            return
