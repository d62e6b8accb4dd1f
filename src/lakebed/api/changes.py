"""The change feed of a table: what its versions did to rows, read when asked."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakebed.api.parts import Parts
from lakebed.api.points import Point
from lakebed.api.rowops import open_bench
from lakebed.core.lease import AFTER_S
from lakebed.core.scan import chosen_columns
from lakebed.model.errors import InvalidInput, MissingExtra
from lakebed.model.expressions import Predicate
from lakebed.model.history import CommitRecord, TableHead, TableState
from lakebed.model.ids import Version
from lakebed.rowops.feed import Feed, feed_schema, refuse_clash, split_where
from lakebed.rowops.steps import open_to_all, step_of, widest

if TYPE_CHECKING:
    import pandas as pd

    from lakebed.rowops.workbench import Workbench


class Changes:
    """Found when first used. Rows are shown in the schema of the last version."""

    def __init__(
        self,
        parts: Parts,
        head: TableHead,
        first: Point,
        last: Point,
        *,
        columns: tuple[str, ...] | None,
        where: Predicate | None,
    ) -> None:
        """`head` is that of the line; what happened after `first` counts, up to `last`."""
        self._parts = parts
        self._head = head
        self._ledger = parts.outbox.ledger(head.id)
        last_commit = last.commit(parts, head)
        begins = first.version is not None or first.time_ms is not None
        self._after = first.commit(parts, head).version if begins else Version(-1)
        self._until = last_commit.version
        if self._after > self._until:
            raise InvalidInput(
                f"the changes would begin after version {self._after} and end at {self._until}",
                hint="give the earlier version first",
            )
        state = parts.planner.state(head, last_commit.version)
        self._commits = self._found()
        self._schema = widest(open_to_all(state.schema), self._states())
        self._columns = chosen_columns(self._schema, columns)
        refuse_clash(self._columns)
        self._where, self._about = split_where(where, self._schema)

    def to_arrow(self) -> pa.Table:
        with open_bench(self._parts) as bench:
            feed = self._feed(bench)
            return pa.Table.from_batches(self._batches(feed, AFTER_S), feed_schema(feed))

    def to_batches(self) -> pa.RecordBatchReader:
        """A stream: the rows that one version changed are held, and none that it left alone."""
        bench = open_bench(self._parts)
        feed = self._feed(bench)

        def batches() -> Iterator[pa.RecordBatch]:
            with bench:
                yield from self._batches(feed, 0.0)

        return pa.RecordBatchReader.from_batches(feed_schema(feed), batches())

    def to_pandas(self) -> "pd.DataFrame":
        try:
            frame: pd.DataFrame = self.to_arrow().to_pandas()
        except ImportError as error:
            raise MissingExtra(
                "pandas is not installed", hint="pip install 'lakebed[pandas]'"
            ) from error
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Every library that takes Arrow streams takes this."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def _feed(self, bench: "Workbench") -> Feed:
        return Feed(
            self._schema, self._columns, self._where, self._parts.storage, bench, self._about
        )

    def _batches(self, feed: Feed, after_s: float) -> Iterator[pa.RecordBatch]:
        oldest = Version(max(0, self._after))
        with self._parts.leases.reading(self._head.id, oldest, after_s=after_s) as lease:
            for commit in self._commits:
                view = self._ledger.view(commit.version, commit.line)
                step = step_of(
                    view, self._schema, lambda live: self._parts.planner.positions(self._head, live)
                )
                for batch in feed.batches(step):
                    lease.touch()
                    yield batch

    def _found(self) -> list[CommitRecord]:
        """In the order of versions."""
        count = self._until - self._after
        return self._ledger.commits_until(self._until, self._head.line, count)[::-1]

    def _states(self) -> list[TableState]:
        """All that the table was on the way, and before."""
        known = [*self._commits, *self._ledger.commits_until(self._after, self._head.line, 1)]
        return [self._ledger.state(i) for i in sorted({c.state_id for c in known})]
