"""What is measured, and how: a process of its own per call, or per system where a warm one is
meant; the systems in turn, CPU before wall.

A measure is a module of benchmarks/measures with a MEASURE. Its code for one system runs in that
system's environment, so that libraries of systems are imported inside functions.
"""

import os
import random
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, Self

from benchmarks.worker import Worker

REPO = Path(__file__).resolve().parent.parent
ENVIRONMENTS = {
    "lakebed": REPO / ".venv",
    "peers": REPO / ".venv-bench",
    "ducklake": REPO / ".venv-ducklake",
}
Fact = str | int | float | list[object]


@dataclass(frozen=True, slots=True)
class Case:
    """`table` names what is made once, and shared by the cases that name it alike."""

    name: str
    table: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    text: str = ""  # a condition or a query
    systems: Sequence[str] = ()  # those that can do it; none named: all
    warm: int | None = None  # in place of the measure's


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
    def median_wall_s(self) -> float:
        return statistics.median(s.wall_s for s in self.samples)

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
    # Calls before those that count, in a process that stays for all cases; None: each has its own.
    warm: int | None = None
    most: int | None = None  # calls of each system, however many are asked for


def alike(case: str, demand: str, figure: str, met: bool) -> Verdict:
    """Both systems did the same: without it no time means anything."""
    return Verdict(case, demand, figure, met, about="answers")


def at_most(case: str, demand: str, value: float, limit: float, unit: str = "x") -> Verdict:
    return Verdict(case, demand, f"{value:.3g}{unit}", value <= limit)


def at_least(case: str, demand: str, value: float, limit: float, unit: str = "x") -> Verdict:
    return Verdict(case, demand, f"{value:.3g}{unit}", value >= limit)


class Bench:
    """Runs measures in a folder: `data` is kept for later runs, tables are made anew."""

    def __init__(
        self,
        data: Path,
        *,
        repeat: int,
        tiny: bool,
        say: Callable[[str], None],
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        """`sizes` take the place of those that a case has by these names."""
        self._data = data
        self._repeat = repeat
        self._tiny = tiny
        self._say = say
        self._sizes = sizes or {}

    def run(self, measure: Measure, only: Sequence[str] = ()) -> Results:
        self._data.mkdir(parents=True, exist_ok=True)
        results: dict[str, dict[str, Figures]] = {}
        with (
            tempfile.TemporaryDirectory(prefix="tables-", dir=self._data) as folder,
            _Stage(Path(folder), self._data, measure, share=self._tiny) as stage,
        ):
            for case in map(self._sized, measure.cases(self._tiny)):
                if not only or any(part in case.name for part in only):
                    self._say(f"{measure.name}: {case.name}")
                    results[case.name] = self._run_case(stage, measure, case)
        return results

    def _sized(self, case: Case) -> Case:
        given = {name: size for name, size in self._sizes.items() if name in case.sizes}
        return replace(case, sizes={**case.sizes, **given})

    def _run_case(self, stage: "_Stage", measure: Measure, case: Case) -> dict[str, Figures]:
        samples: dict[str, list[Sample]] = {name: [] for name in case.systems or measure.systems}
        asked = measure.warm if case.warm is None else case.warm
        warm = 0 if self._tiny else asked or 0
        repeat = self._repeat if measure.most is None else min(measure.most, self._repeat)
        for turn in range(warm + repeat):
            for name in random.sample(list(samples), len(samples)):
                sample = stage.call(name, case)
                counts = turn >= warm
                if counts:
                    samples[name].append(sample)
                said = "" if counts else " (to warm up)"
                self._say(f"  {name}: {sample.cpu_s * 1000:,.1f} ms CPU{said}")
        stage.sweep()
        return {name: Figures(taken) for name, taken in samples.items()}


class _Stage:
    """The tables of one measure. A table is always at the same place: some keep absolute paths."""

    def __init__(self, folder: Path, data: Path, measure: Measure, *, share: bool) -> None:
        """With `share` processes that stay work for all systems: where times mean nothing."""
        self._folder = folder
        self._data = data
        self._measure = measure
        self._share = share
        self._swept = 0
        self._workers: dict[str, Worker] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            worker.end()

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
        order = {
            "measure": self._measure.name,
            "system": name,
            "job": job,
            "folder": str(folder),
            "data": str(self._data),
            "case": asdict(case),
        }
        where = f"{self._measure.name}, {case.name}, {name}: {job}"
        environment = self._measure.systems[name].environment
        kept = environment if self._share else name
        worker = self._workers.pop(kept, None) or self._start(environment)
        try:
            sample = Sample(**worker.ask(order, where))
        except BaseException:
            worker.end()
            raise
        if self._measure.warm is not None:
            self._workers[kept] = worker
        else:
            worker.end()
        return sample

    def _start(self, environment: str) -> Worker:
        python = ENVIRONMENTS[environment] / "bin" / "python"
        return Worker([str(python), "-m", "benchmarks.child"], REPO)


def _copy(source: str, target: str) -> None:
    if source.endswith(".parquet"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def files_below(folder: Path) -> Iterator[Path]:
    """The data files that are there, live or not."""
    return (path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts)
