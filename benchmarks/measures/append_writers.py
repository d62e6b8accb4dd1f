"""Many writers of 1-row appends: threads of one process, and processes."""

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import (
    REPO,
    Call,
    Case,
    Fact,
    Figures,
    Measure,
    Results,
    Verdict,
    alike,
    at_least,
    at_most,
)
from benchmarks.measures.appending import COLUMNS

_SLOW_US = 5000
_SLOW = ", syncs 5 ms slower"
_SHAPES = {  # threads, tables, processes
    "1 thread": (1, 1, 1),
    "8 threads, 1 table": (8, 1, 1),
    "8 threads, 8 tables": (8, 8, 1),
    "4 processes, 1 table": (1, 1, 4),
}


class LakebedWriters:
    environment = "lakebed"
    owner = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import lakebed

        with lakebed.open(folder, create=True) as lake:
            for name in _tables(case):
                lake.create_table(name, COLUMNS)

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        slow_us, processes = case.sizes["slow_us"], case.sizes["processes"]
        environment = dict(os.environ)
        if slow_us:
            shim = str(_compiled(data))
            environment |= {"LD_PRELOAD": shim, "SLOW_SYNC_US": str(slow_us)}
        started = [_start(environment) for _ in range(processes)]
        for number, process in enumerate(started):
            _tell(
                process,
                {
                    "lake": str(folder),
                    "tables": _tables(case),
                    "threads": case.sizes["threads"],
                    "first": (number + 1) * 1_000_000,
                    "commits": case.sizes["commits"] // processes,
                },
            )
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n", "a writer could not open the lake"

        def run() -> list[dict[str, object]]:
            for process in started:
                _tell(process, {})
            return [_answer(process) for process in started]

        def facts(answers: object) -> dict[str, Fact]:
            assert isinstance(answers, list)
            failed = sum(process.wait(60) != 0 for process in started)
            waits = [wait for answer in answers for wait in answer["waits"]]
            found = _rows(folder, _tables(case))
            return {
                "rows": found[0],
                "distinct": found[1],
                "written": len(waits) + processes,
                "failed": failed,
                "commits": len(waits),
                "writing_s": max(answer["wall_s"] for answer in answers),
                "longest": max(waits) / statistics.fmean(waits),
            }

        return Call(run, facts)


def _tables(case: Case) -> list[str]:
    return [f"bench.events{n}" for n in range(case.sizes["tables"])]


def _start(environment: dict[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.appender"],
        cwd=REPO,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _tell(process: "subprocess.Popen[str]", order: dict[str, object]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()


def _answer(process: "subprocess.Popen[str]") -> dict[str, object]:
    assert process.stdout is not None
    answer: dict[str, object] = json.loads(process.stdout.readline())
    return answer


def _rows(folder: Path, tables: Sequence[str]) -> tuple[int, int]:
    import lakebed

    with lakebed.open(folder) as lake:
        ids = [lake.table(t).scan(columns=["id"]).to_arrow().column(0).to_pylist() for t in tables]
    return sum(map(len, ids)), len({n for some in ids for n in some})


def _compiled(data: Path) -> Path:
    """The shim, made once; it wraps the C library's calls, which SQLite and Python both use."""
    shim = data / "slow_sync.so"
    if not shim.exists():
        part = shim.with_suffix(f".{os.getpid()}")
        source = REPO / "benchmarks" / "slow_sync.c"
        command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(part), str(source), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)
        part.rename(shim)
    return shim


def _cases(tiny: bool) -> Sequence[Case]:
    slow = [("", 0), (_SLOW, _SLOW_US)] if shutil.which("cc") and os.name == "posix" else [("", 0)]
    commits = 16 if tiny else 400
    return [
        Case(f"{name}{suffix}", f"events-{tables}", sizes)
        for suffix, slow_us in slow
        for name, (threads, tables, processes) in _SHAPES.items()
        for sizes in [
            {
                "threads": threads,
                "tables": tables,
                "processes": processes,
                "commits": commits,
                "slow_us": slow_us,
            }
        ]
        if not (tiny and slow_us and threads == tables)
    ]


def _judge(results: Results) -> Iterator[Verdict]:
    for name, systems in results.items():
        ours = systems["lakebed"]
        whole = ours.facts["rows"] == ours.facts["distinct"] == ours.facts["written"]
        figure = f"{ours.number('rows'):,.0f} rows, {_rate(ours):.0f} commits/s"
        safe = whole and ours.facts["failed"] == 0
        yield alike(name, "no failure, every row is there once", figure, safe)
        slow = name.endswith(_SLOW)
        alone = results.get(f"1 thread{_SLOW if slow else ''}")
        if name.startswith("8 threads") and alone is not None:
            ratio, least = _rate(ours) / _rate(alone["lakebed"]), 3 if slow else 2
            yield at_least(name, f"commits/s of one thread >= {least}x", ratio, least)
        if name.startswith("4 processes"):
            longest = max(float(str(s.facts["longest"])) for s in ours.samples)
            yield at_most(name, "longest append, of the mean <= 10x", longest, 10)


def _rate(figures: Figures) -> float:
    return figures.number("commits") / figures.median_wall_s


MEASURE = Measure(
    "append-writers",
    "1-row appends by many writers",
    {"lakebed": LakebedWriters()},
    _cases,
    _judge,
    changes=True,
)
