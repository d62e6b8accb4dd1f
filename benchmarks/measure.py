"""What is measured, and how: one process per call, the systems in turn, CPU before wall.

A measure is a module of benchmarks/measures with a MEASURE. Its code for one system runs in that
system's environment, so that libraries of systems are imported inside functions.
"""

import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, Protocol

REPO = Path(__file__).resolve().parent.parent
ENVIRONMENTS = {"lakebed": REPO / ".venv", "peers": REPO / ".venv-bench"}
_MOST_SECONDS = 7200
Fact = str | int | float | list[object]


@dataclass(frozen=True, slots=True)
class Case:
    """`table` names what is made once, and shared by the cases that name it alike."""

    name: str
    table: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    text: str = ""  # a condition or a query


@dataclass(frozen=True, slots=True)
class Call:
    """`run` is timed; `facts` looks at what it did, and is not."""

    run: Callable[[], object]
    facts: Callable[[object], dict[str, Fact]]


class System(Protocol):
    """One of the things that are compared."""

    environment: str
    owner: str  # the system whose table is used: mostly itself

    def make(self, folder: Path, case: Case, data: Path) -> None:
        """Make the case's table in an empty folder."""

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        """Everything that comes before the call: imports, opening, the source's rows."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Of one call: all threads and children; the peak is of the whole process during the call."""

    cpu_s: float
    wall_s: float
    peak_bytes: int
    facts: Mapping[str, Fact]


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one system in one case."""

    samples: Sequence[Sample]

    @property
    def cpu_s(self) -> float:
        """The least: other work on the machine only ever adds."""
        return min(s.cpu_s for s in self.samples)

    @property
    def median_cpu_s(self) -> float:
        return statistics.median(s.cpu_s for s in self.samples)

    @property
    def wall_s(self) -> float:
        return min(s.wall_s for s in self.samples)

    @property
    def peak_bytes(self) -> int:
        return min(s.peak_bytes for s in self.samples)

    @property
    def facts(self) -> Mapping[str, Fact]:
        return self.samples[-1].facts

    def number(self, fact: str) -> float:
        found = self.facts[fact]
        assert isinstance(found, int | float), f"{fact} is no number: {found!r}"
        return found


@dataclass(frozen=True, slots=True)
class Verdict:
    case: str
    demand: str
    figure: str
    met: bool
    about: Literal["answers", "speed"] = "speed"


Results = Mapping[str, Mapping[str, Figures]]  # by case, then by system
Judge = Callable[[Results], Iterable[Verdict]]


@dataclass(frozen=True, slots=True)
class Measure:
    name: str
    title: str
    systems: Mapping[str, System]  # ours first
    cases: Callable[[bool], Sequence[Case]]  # given True: tiny ones, to see that all of it runs
    judge: Judge
    changes: bool  # does the call change the table?


def alike(case: str, demand: str, figure: str, met: bool) -> Verdict:
    """Both systems did the same: without it no time means anything."""
    return Verdict(case, demand, figure, met, about="answers")


def at_most(case: str, demand: str, value: float, limit: float, unit: str = "x") -> Verdict:
    return Verdict(case, demand, f"{value:.3g}{unit}", value <= limit)


def at_least(case: str, demand: str, value: float, limit: float, unit: str = "x") -> Verdict:
    return Verdict(case, demand, f"{value:.3g}{unit}", value >= limit)


class Bench:
    """Runs measures in a folder: `data` is kept for later runs, tables are made anew."""

    def __init__(self, data: Path, *, repeat: int, tiny: bool, say: Callable[[str], None]) -> None:
        self._data = data
        self._repeat = repeat
        self._tiny = tiny
        self._say = say

    def run(self, measure: Measure, only: str = "") -> Results:
        self._data.mkdir(parents=True, exist_ok=True)
        results: dict[str, dict[str, Figures]] = {}
        with tempfile.TemporaryDirectory(prefix="tables-", dir=self._data) as folder:
            stage = _Stage(Path(folder), self._data, measure)
            for case in measure.cases(self._tiny):
                if only in case.name:
                    self._say(f"{measure.name}: {case.name}")
                    results[case.name] = self._run_case(stage, measure, case)
        return results

    def _run_case(self, stage: "_Stage", measure: Measure, case: Case) -> dict[str, Figures]:
        samples: dict[str, list[Sample]] = {name: [] for name in measure.systems}
        for _ in range(self._repeat):
            for name in random.sample(list(samples), len(samples)):
                sample = stage.call(name, case)
                samples[name].append(sample)
                self._say(f"  {name}: {sample.cpu_s * 1000:,.1f} ms CPU")
        stage.sweep()
        return {name: Figures(taken) for name, taken in samples.items()}


class _Stage:
    """The tables of one measure. A table is always at the same place: some keep absolute paths."""

    def __init__(self, folder: Path, data: Path, measure: Measure) -> None:
        self._folder = folder
        self._data = data
        self._measure = measure
        self._swept = 0

    def call(self, name: str, case: Case) -> Sample:
        owner = self._measure.systems[name].owner
        live, kept = self._folder / owner / case.table, self._folder / "kept" / owner / case.table
        if not kept.exists() and not live.exists():
            live.mkdir(parents=True)
            self._child(owner, "make", live, case)
        if self._measure.changes:
            self._renew(live, kept)
        return self._child(name, "call", live, case)

    def _renew(self, live: Path, kept: Path) -> None:
        """The table as it was made. Data files are never changed in place: a link is a copy."""
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            live.rename(kept)
        if live.exists():
            self._swept += 1  # removed later: file systems are slow right after
            trash = self._folder / "trash"
            trash.mkdir(exist_ok=True)
            live.rename(trash / str(self._swept))
        shutil.copytree(kept, live, copy_function=_copy)

    def sweep(self) -> None:
        shutil.rmtree(self._folder / "trash", ignore_errors=True)

    def _child(self, name: str, job: str, folder: Path, case: Case) -> Sample:
        system = self._measure.systems[name]
        answer = self._folder / "answer.json"
        order = {
            "measure": self._measure.name,
            "system": name,
            "job": job,
            "folder": str(folder),
            "data": str(self._data),
            "answer": str(answer),
            "case": asdict(case),
        }
        python = ENVIRONMENTS[system.environment] / "bin" / "python"
        done = subprocess.run(
            [python, "-m", "benchmarks.child", json.dumps(order)],
            cwd=REPO,
            capture_output=True,
            text=True,
            timeout=_MOST_SECONDS,
            check=False,
        )
        if done.returncode:
            where = f"{self._measure.name}, {case.name}, {name}: {job}"
            raise RuntimeError(f"{where} failed\n{done.stdout}{done.stderr}")
        return Sample(**json.loads(answer.read_text()))


def _copy(source: str, target: str) -> None:
    if source.endswith(".parquet"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def files_below(folder: Path) -> Iterator[Path]:
    """The data files that are there, live or not."""
    return (path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts)
