"""Runs of pipelines: one at a time, cursors and lineage with their commit, or nothing of it."""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lakebed.meta import cursors, lineage, runs, tables
from lakebed.meta.store import Store, Tx
from lakebed.model.errors import InvalidInput, PipelineBusy, RunLost, RunNotFound
from lakebed.model.ids import TableId, Version
from lakebed.model.runs import (
    RUNNING,
    SUCCEEDED,
    UNCHANGED,
    Cursor,
    Derivation,
    FileMark,
    LineageEdge,
    Run,
    RunAttachment,
    RunReport,
)

Placed = Mapping[str, tuple[TableId, Version]]  # what a commit made of each table


class Runs:
    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(
        self, run_id: str, pipeline: str, author: str, report: RunReport, *, ttl_s: float
    ) -> tuple[Run, Run | None]:
        """The run, and the one whose place it took because nothing was heard of it any more."""
        with self._store.write() as tx:
            now = tx.now_ms()
            before = runs.running(tx, pipeline)
            if before is not None and before[1] > now and not _has_ended(before[2]):
                raise _busy(before[0])
            if before is not None:
                runs.lose_run(tx, before[0].id)
            run = Run(run_id, pipeline, RUNNING, now, None, author, report)
            until = now + int(ttl_s * 1000)
            if not runs.insert_run(tx, run, owner=_owner(), alive_until_ms=until):
                raise PipelineBusy(
                    f"another run of pipeline {pipeline!r} began just now", hint="try again"
                )
        return run, before[0] if before else None

    def renew(self, run_id: str, *, ttl_s: float) -> bool:
        """False when another run has taken its place."""
        with self._store.write(durable=False) as tx:
            return runs.renew_run(tx, run_id, tx.now_ms() + int(ttl_s * 1000))

    def end(self, run_id: str, status: str, report: RunReport) -> bool:
        """Without a commit; False when the run is not under way any more."""
        with self._store.write() as tx:
            return runs.end_run(tx, run_id, status, report)

    def finish_unchanged(self, attachment: RunAttachment) -> None:
        """A run that changes no table moves its cursors alone."""
        with self._store.write() as tx:
            keep_run(tx, attachment, {}, UNCHANGED)

    def newest(self, pipeline: str | None, limit: int) -> list[Run]:
        with self._store.read() as tx:
            return runs.list_runs(tx, pipeline, limit)

    def get(self, run_id: str) -> Run:
        """By its id, or by the beginning of it where that is enough."""
        with self._store.read() as tx:
            found = runs.find_runs(tx, run_id)
        if not found:
            raise RunNotFound(f"there is no run {run_id!r}", hint="see `lakebed runs`")
        if len(found) > 1 and found[0].id != run_id:
            raise InvalidInput(f"several runs begin with {run_id!r}", hint="give more of the id")
        return found[0]

    def cursors(self, pipeline: str) -> dict[tuple[str, str], Cursor]:
        with self._store.read() as tx:
            return {(c.step, c.input): c for c in cursors.list_cursors(tx, pipeline)}

    def marks(
        self, pipeline: str, step: str, given: str, paths: Sequence[str], others: Sequence[str]
    ) -> Sequence[FileMark]:
        with self._store.read() as tx:
            return cursors.find_marks(tx, pipeline, step, given, paths, others=others)

    def upstream(self, table_id: TableId) -> list[LineageEdge]:
        """What a table was made from, and what that was made from; the newest time of each."""
        with self._store.read() as tx:
            return _walk(
                table_id,
                lambda at: [
                    (edge.input_id, _named(tx, edge)) for edge in lineage.made_from(tx, at)
                ],
            )

    def downstream(self, table_id: TableId) -> list[LineageEdge]:
        """What was made from a table, and what was made from that."""
        with self._store.read() as tx:
            return _walk(
                table_id,
                lambda at: [(made, _named(tx, edge)) for made, edge in lineage.made_of_it(tx, at)],
            )


def keep_run(tx: Tx, ended: RunAttachment, placed: Placed, status: str = SUCCEEDED) -> None:
    """Write a run's end beside its commit; refused when another run has taken its place."""
    report = replace(ended.report, written={name: v for name, (_, v) in placed.items()})
    if not runs.end_run(tx, ended.run_id, status, report):
        raise RunLost(
            f"run {ended.run_id} of pipeline {ended.pipeline!r} was silent for too long: another"
            " run took its place",
            hint="run it again",
        )
    for step in ended.forgotten:
        cursors.forget_marks(tx, ended.pipeline, step)
    moved = [_placed_cursor(cursor, placed) for cursor in ended.cursors]
    cursors.put_cursors(tx, ended.pipeline, moved, ended.run_id)
    cursors.put_marks(tx, ended.pipeline, ended.marks, ended.run_id)
    made = [
        (_placed_derivation(each, placed), *placed[each.output])
        for each in ended.derivations
        if each.output in placed
    ]
    lineage.insert_lineage(tx, ended.run_id, made)


def _placed_derivation(derivation: Derivation, placed: Placed) -> Derivation:
    """From a table of the same commit it comes at the version that it makes."""
    source = placed.get(derivation.input)
    if source is None or derivation.until is not None:
        return derivation
    return replace(derivation, input_id=source[0], until=source[1])


def _placed_cursor(cursor: Cursor, placed: Placed) -> Cursor:
    """A cursor on a table of the same commit stands at the version that it makes."""
    if cursor.version is not None or cursor.table is None or cursor.table not in placed:
        return cursor
    table_id, version = placed[cursor.table]
    return replace(cursor, table_id=table_id, version=version)


def _walk(
    start: TableId, step: Callable[[TableId], Sequence[tuple[TableId | None, LineageEdge]]]
) -> list[LineageEdge]:
    """Edges by depth, each pair of tables once, with its newest commit."""
    found: dict[tuple[str, str], LineageEdge] = {}
    seen, level, depth = {start}, [start], 1
    while level:
        following: list[TableId] = []
        for at in level:
            for there, edge in step(at):
                found.setdefault((edge.output, edge.input), replace(edge, depth=depth))
                if there is not None and there not in seen:
                    seen.add(there)
                    following.append(there)
        level, depth = following, depth + 1
    return list(found.values())


def _named(tx: Tx, edge: LineageEdge) -> LineageEdge:
    """A table is called what it is called now, where it is still there."""
    head = None if edge.input_id is None else tables.find_by_id(tx, edge.input_id)
    return edge if head is None else replace(edge, input=str(head.name))


def _owner() -> str:
    return f"{platform.node()}:{os.getpid()}"


def _has_ended(owner: str) -> bool:
    """Is it a process of this machine that is there no more? What is in doubt is alive.

    A wrong answer costs the other run, never the tables: it cannot commit any more.
    """
    node, _, pid = owner.rpartition(":")
    if os.name != "posix" or node != platform.node() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _busy(run: Run) -> PipelineBusy:
    return PipelineBusy(
        f"run {run.id} of pipeline {run.pipeline!r} by {run.author} is under way",
        hint="wait for it with --wait SECONDS, or see `lakebed runs`",
        run=run.id,
    )
