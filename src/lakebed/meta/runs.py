"""SQL for runs of pipelines: begin, renew, end, list."""

import orjson

from lakebed.meta.dialect import Row
from lakebed.meta.store import Tx
from lakebed.model.runs import (
    LOST,
    RUNNING,
    ExpectationReport,
    Failure,
    InputReport,
    Run,
    RunReport,
    StepReport,
    StepWork,
)

_RUN = "SELECT run_id, pipeline, status, started_ms, finished_ms, author, report FROM runs"


def insert_run(tx: Tx, run: Run, *, owner: str, alive_until_ms: int) -> bool:
    """False when a run of the pipeline is under way; `owner` is the process, host:pid."""
    return bool(
        tx.run(
            "INSERT INTO runs (run_id, pipeline, status, started_ms, alive_until_ms, author,"
            " owner, report) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (
                run.id,
                run.pipeline,
                run.status,
                run.started_ms,
                alive_until_ms,
                run.author,
                owner,
                _text(run.report),
            ),
        )
    )


def running(tx: Tx, pipeline: str) -> tuple[Run, int, str] | None:
    """The run under way, until when it counts as alive, and its owner."""
    row = tx.one(
        "SELECT run_id, pipeline, status, started_ms, finished_ms, author, report,"
        " alive_until_ms, owner"
        " FROM runs WHERE pipeline = ? AND status = ?",
        (pipeline, RUNNING),
    )
    return (_run(row[:7]), int(row[7]), str(row[8])) if row else None


def renew_run(tx: Tx, run_id: str, alive_until_ms: int) -> bool:
    return bool(
        tx.run(
            "UPDATE runs SET alive_until_ms = ? WHERE run_id = ? AND status = ?",
            (alive_until_ms, run_id, RUNNING),
        )
    )


def end_run(tx: Tx, run_id: str, status: str, report: RunReport) -> bool:
    """False when the run is not under way any more."""
    return bool(
        tx.run(
            "UPDATE runs SET status = ?, finished_ms = ?, report = ?"
            " WHERE run_id = ? AND status = ?",
            (status, tx.now_ms(), _text(report), run_id, RUNNING),
        )
    )


def lose_run(tx: Tx, run_id: str) -> None:
    tx.run(
        "UPDATE runs SET status = ?, finished_ms = alive_until_ms WHERE run_id = ? AND status = ?",
        (LOST, run_id, RUNNING),
    )


def find_runs(tx: Tx, prefix: str) -> list[Run]:
    """Runs whose id begins so; two are enough to know that it says too little."""
    # Compared by place: LIKE means different letters in the two databases.
    rows = tx.all(
        _RUN + " WHERE substr(run_id, 1, ?) = ? ORDER BY run_id LIMIT 2", (len(prefix), prefix)
    )
    return [_run(row) for row in rows]


def list_runs(tx: Tx, pipeline: str | None, limit: int) -> list[Run]:
    """Newest first."""
    if pipeline is None:
        rows = tx.all(_RUN + " ORDER BY started_ms DESC, run_id LIMIT ?", (limit,))
    else:
        rows = tx.all(
            _RUN + " WHERE pipeline = ? ORDER BY started_ms DESC, run_id LIMIT ?", (pipeline, limit)
        )
    return [_run(row) for row in rows]


def _text(report: RunReport) -> str:
    return orjson.dumps(report).decode()


def _run(row: Row) -> Run:
    run_id, pipeline, status, started_ms, finished_ms, author, report = row
    return Run(run_id, pipeline, status, started_ms, finished_ms, author, _report(report))


def _report(text: str) -> RunReport:
    plain = orjson.loads(text)
    failure = plain["failure"]
    return RunReport(
        plain["parameters"],
        tuple(
            StepReport(
                **{
                    **step,
                    "inputs": tuple(InputReport(**i) for i in step["inputs"]),
                    "expectations": tuple(ExpectationReport(**e) for e in step["expectations"]),
                    "work": None if (work := step.get("work")) is None else StepWork(**work),
                }
            )
            for step in plain["steps"]
        ),
        plain["written"],
        None if failure is None else Failure(**failure),
    )
