"""MERGE on Spark: the rows that meet are found once, with the act for each and its new row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebed.engines.spark.act import Act
from lakebed.model.errors import AmbiguousMerge, InvalidInput
from lakebed.model.expressions import Predicate
from lakebed.model.files import LiveFile
from lakebed.model.schema import Schema
from lakebed.model.types import Scalar, Stored
from lakebed.rowops import source as embedded
from lakebed.rowops.change import RowChange
from lakebed.rowops.clause import Aliases, Clause, When
from lakebed.rowops.condition import Condition
from lakebed.rowops.delete import PLACE
from lakebed.rowops.keys import MOST_VALUES, Key, key_values, keys_of, scalar_keys
from lakebed.rowops.merge import every_file, files_to_match, refuse_other_columns
from lakebed.rowops.rows import ROW_ID
from lakebed.rowops.settle import Tally
from lakebed.rowops.spark.settle import SparkTarget, by_file, settle
from lakebed.rowops.spark.update import to_fields
from lakebed.rowops.workbench import Expression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakebed.engines.spark.joining import Joining, Source
    from lakebed.engines.spark.positions import Hits

Equal = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """ON, and the columns that it demands to be equal."""

    on: Condition
    equal: Equal
    aliases: Aliases


def merge(
    target: SparkTarget, source: "Source", matching: Matching, clauses: Sequence[Clause]
) -> RowChange:
    """One change, whatever the number of clauses and rows."""
    table = target.table
    acts = _acts(clauses, table.schema, source)
    keys = _keys(matching, table.schema, source)
    if acts[When.BY_SOURCE]:
        files, reads = every_file(table)
    else:
        files, reads = _files(target, source, keys, matching)
    job = _Job(target, source, files, matching, acts)
    return job.run(keys, reads)


def _acts(clauses: Sequence[Clause], schema: Schema, source: "Source") -> dict[When, list[Act]]:
    if not clauses:
        raise InvalidInput(
            "the merge has no clause", hint="add one, such as when_matched_update_all()"
        )
    found: dict[When, list[Act]] = {when: [] for when in When}
    for clause in clauses:
        what, same = f"WHEN {clause.when.value}", found[clause.when]
        values = None
        if clause.values is not None:
            values = to_fields(schema, clause.values, f"{what} THEN")
        elif clause.action != "delete":
            refuse_other_columns(schema, source.names, what)
        same.append(Act(len(same) + 1, clause.action, clause.condition, values, what))
    return found


def _keys(matching: Matching, schema: Schema, source: "Source") -> list[Key]:
    known = embedded.Source("", source.names, "")
    return keys_of(Expression("", (), equal=matching.equal), schema, known, matching.aliases)


def _files(
    target: SparkTarget, source: "Source", keys: Sequence[Key], matching: Matching
) -> tuple[list[LiveFile], Predicate]:
    sought = [(key.column, kind) for key, kind in scalar_keys(keys)]
    found = target.bench.key_values(source, sought, MOST_VALUES)

    def values_of(key: Key, kind: Scalar) -> tuple[list[Stored], bool] | None:
        return found.get((key.column, kind))

    values = key_values(keys, target.table.schema, values_of)
    return files_to_match(target.table, values, matching.on, matching.aliases)


class _Job:
    def __init__(
        self,
        target: SparkTarget,
        source: "Source",
        files: Sequence[LiveFile],
        matching: Matching,
        acts: dict[When, list[Act]],
    ) -> None:
        self._target, self._source, self._files = target, source, files
        self._matching, self._acts = matching, acts
        self._tally = Tally(scanned_files=len(files))

    def run(self, keys: Sequence[Key], reads: Predicate) -> RowChange:
        table, bench = self._target.table, self._target.bench
        aliases = (self._matching.aliases.target, self._matching.aliases.source)
        about = (*PLACE, ROW_ID) if table.lineage else PLACE
        joining = bench.joining(table.plan(self._files), self._source, aliases=aliases, about=about)
        with bench.telling("merging rows"):
            pairs = joining.pairs(self._matching.on.text, self._acts[When.MATCHED])
        hits = bench.joined_hits(joining, pairs)
        self._refuse_ambiguous(joining, pairs, hits, keys)
        new = self._take(joining, pairs, hits, self._acts[When.MATCHED])
        if self._acts[When.BY_SOURCE]:
            with bench.telling("merging rows"):
                alone = joining.alone(pairs, self._acts[When.BY_SOURCE])
            more = bench.joined_hits(joining, alone)
            new += self._take(joining, alone, more, self._acts[When.BY_SOURCE])
            hits += more
        inserts = self._acts[When.NOT_MATCHED]
        if inserts:
            with bench.telling("merging rows"):
                new.append(joining.inserted(pairs, inserts))
        return settle(
            self._target,
            by_file(self._files, hits),
            new_rows=new,
            reads=reads,
            counts=self._tally,
            inserts=bool(inserts),
        )

    def _take(
        self, joining: "Joining", found: "DataFrame", hits: "Sequence[Hits]", acts: Sequence[Act]
    ) -> "list[DataFrame]":
        """Count what is done to rows that were found; the new ones of those that change."""
        writing = {act.number for act in acts if act.writes}
        for each in hits:
            if each.act in writing:
                self._tally.updated_rows += each.rows
            else:
                self._tally.deleted_rows += each.rows
        changes = any(each.act in writing for each in hits)
        return [joining.written(found, acts)] if changes else []

    def _refuse_ambiguous(
        self,
        joining: "Joining",
        pairs: "DataFrame",
        hits: "Sequence[Hits]",
        keys: Sequence[Key],
    ) -> None:
        """Two rows of the source that would change one row of the table."""
        distinct = by_file(self._files, hits)
        if sum(each.rows for each in hits) == sum(map(len, distinct.values())):
            return
        columns = [key.column for key in keys] or list(self._source.names)
        with self._target.bench.telling("merging rows"):
            row = joining.met_twice(pairs, columns)
        shown = ", ".join(f"{name} = {value!r}" for name, value in row.items())[:500]
        raise AmbiguousMerge(
            f"several rows of the source match the same row of the table: {shown}",
            hint="leave one row per key in the source, or narrow ON",
        )
