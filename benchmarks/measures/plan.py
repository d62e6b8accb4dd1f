"""Plans of selective queries over very many files, by conditions that were never asked before.

The files are not there: their metadata is, as commits of a few hundred of them leave it. One in a
hundred was removed or has lost rows, and every process of lakebed commits before it plans.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from benchmarks.measure import (
    Call,
    Case,
    Fact,
    Figures,
    Measure,
    Results,
    System,
    Verdict,
    alike,
    at_most,
)
from benchmarks.measures.plan_ducklake import DuckLakePlan
from benchmarks.measures.plan_files import COMMIT, Shape, choose
from benchmarks.measures.plan_lakebed import TABLE, make_table, outside
from benchmarks.measures.plan_pyiceberg import PyIcebergPlan
from benchmarks.measures.plan_server import ServerCpu

if TYPE_CHECKING:
    from lakebed.api.table import Table

_FILES = 1_000_000
_FEWER = 100_000  # for PyIceberg, which takes a minute to plan over a million
_TINY = 700
_PLANS = 10  # in one call
_KINDS = {"clustered": 20, "unclustered": 40, "text": 40, "partition": 20}  # most CPU ms
_AFTER = " right after a commit"
_FEW = " among fewer files"
_POSTGRES = "LAKEBED_TEST_POSTGRES"


@dataclass(slots=True)
class _Timed:
    """CPU of plans alone, where something else comes between them."""

    seconds: list[float] = field(default_factory=list)

    def run(self, plan: Callable[[], list[str]]) -> list[str]:
        start = time.process_time()
        found = plan()
        self.seconds.append(time.process_time() - start)
        return found


class LakebedPlan:
    environment = "lakebed"

    def __init__(self, owner: str, postgres: str | None) -> None:
        self.owner = owner
        self._postgres = postgres

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import lakebed

        with lakebed.open(self.uri(folder), create=True, warehouse=self.root(folder)) as lake:
            make_table(lake, Shape(case.sizes["files"]), together=COMMIT)

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import lakebed

        shape, kind = Shape(case.sizes["files"]), case.text.removesuffix(_AFTER)
        table = lakebed.open(self.uri(folder)).table(TABLE)
        table.append(outside())
        table.scan(where="a = -1").plan()  # what is loaded when it is first needed
        wanted, timed = choose(shape, _PLANS), _Timed()
        server = ServerCpu(os.environ[self._postgres] if self._postgres else None)

        def plan(n: int) -> list[str]:
            if case.text.endswith(_AFTER):
                table.append(outside())
            return timed.run(lambda: _plan(table, shape.condition(kind, n)))

        def facts(answer: object) -> dict[str, Fact]:
            right = [shape.expected(kind, n) for n in wanted] == answer
            each = sum(timed.seconds) * 1000 / _PLANS
            spent = server.spent_ms() / _PLANS
            return {"right": int(right), "plans": _PLANS, "plan_ms": each, "server_ms": spent}

        return Call(lambda: [plan(n) for n in wanted], facts)

    def uri(self, folder: Path) -> str:
        if self._postgres is None:
            return str(folder / "lake")
        server, schema = os.environ[self._postgres], f"bench_{folder.parents[1].name[-8:]}"
        return f"{server}{'&' if '?' in server else '?'}schema={schema.replace('-', '_').lower()}"

    def root(self, folder: Path) -> str | None:
        return None if self._postgres is None else str(folder / "warehouse")


def _plan(table: "Table", where: str) -> list[str]:
    # The rows that were really appended lie outside all conditions.
    return [f.file.path for f in table.scan(where=where).plan().files]


def _cases(tiny: bool) -> Sequence[Case]:
    sizes = {"files": _TINY if tiny else _FILES}
    fewer = {"files": _TINY if tiny else _FEWER}
    ours = [name for name in SYSTEMS if name.startswith("lakebed")]
    large = [name for name in SYSTEMS if name != "pyiceberg"]
    kinds = list(_KINDS)[:1] if tiny else list(_KINDS)
    return [
        *(Case(kind, "files", sizes, kind, large) for kind in _KINDS),
        *(Case(kind + _AFTER, "files", sizes, kind + _AFTER, ours) for kind in kinds),
        *(Case(kind + _FEW, "fewer", fewer, kind, ["lakebed", "pyiceberg"]) for kind in kinds),
    ]


def _judge(results: Results) -> Iterator[Verdict]:
    for case, systems in results.items():
        most = _KINDS[case.removesuffix(_AFTER).removesuffix(_FEW)]
        for name, figures in systems.items():
            right = all(s.facts["right"] == 1 for s in figures.samples)
            what = "exactly the files" if name.startswith("lakebed") else "files"
            yield alike(case, f"{name}: {what} that can match", str(right), right)
            if name.startswith("lakebed"):
                each, server = (_middle(figures, fact) for fact in ("plan_ms", "server_ms"))
                yield at_most(case, f"{name}: CPU of a plan <= {most} ms", each, most, " ms")
                if server:
                    demand = f"{name}: with the server's CPU <= {most} ms"
                    yield at_most(case, demand, each + server, most, " ms")
        ours = systems["lakebed"].median_cpu_s / _PLANS
        for name, figures in systems.items():
            if not name.startswith("lakebed"):
                ratio = ours / figures.median_cpu_s
                yield at_most(case, f"CPU of a plan, beside {name}: <= 1x", ratio, 1)


def _middle(figures: Figures, fact: str) -> float:
    return statistics.median(cast(float, s.facts[fact]) for s in figures.samples)


SYSTEMS: dict[str, System] = {
    "lakebed": LakebedPlan("lakebed", None),
    "ducklake on duckdb": DuckLakePlan("duckdb"),
    "ducklake on sqlite": DuckLakePlan("sqlite"),
    "pyiceberg": PyIcebergPlan(),
}
if os.environ.get(_POSTGRES):
    SYSTEMS["lakebed-postgres"] = LakebedPlan("lakebed-postgres", _POSTGRES)
    SYSTEMS["ducklake on postgres"] = DuckLakePlan("postgres")

MEASURE = Measure(
    "plan",
    f"Plans of selective queries over a million files: {_PLANS} in a call of lakebed, 1 of a peer",
    SYSTEMS,
    _cases,
    _judge,
    changes=False,
)
