"""A lake is opened and a first plan is made, in a process that has only imported what it needs."""

import os
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Call, Case, Fact, Measure, Results, Verdict, alike, at_most
from benchmarks.measures.plan import LakebedPlan
from benchmarks.measures.plan_files import Shape, choose
from benchmarks.measures.plan_lakebed import TABLE, make_table

if TYPE_CHECKING:
    from lakebed.api.table import Table

_CASES = {  # name: files, files of a commit, most CPU ms
    "100,000 files": (100_000, 200, 150),
    "50,000 commits": (50_000, 1, 50),
}
_TINY = 60
_POSTGRES = "LAKEBED_TEST_POSTGRES"


class LakebedOpen(LakebedPlan):
    def make(self, folder: Path, case: Case, data: Path) -> None:
        import lakebed

        place = self.uri(folder)
        with lakebed.open(place, create=True, warehouse=self.root(folder)) as lake:
            make_table(lake, Shape(case.sizes["files"]), together=case.sizes["together"])

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import lakebed

        _import_all()
        shape = Shape(case.sizes["files"])
        (n,) = choose(shape, 1)
        place, where = self.uri(folder), shape.condition("clustered", n)

        def first() -> list[str]:
            return _paths(lakebed.open(place).table(TABLE), where)

        def facts(answer: object) -> dict[str, Fact]:
            return {"right": int(answer == shape.expected("clustered", n))}

        return Call(first, facts)

    def uri(self, folder: Path) -> str:
        place = super().uri(folder)
        return f"{place}_{re.sub(r'[^a-z0-9]', '', folder.name)}" if "://" in place else place


def _import_all() -> None:
    """By another lake, of which nothing is kept; drivers of the database by their name."""
    import lakebed

    import_module("lakebed.meta.postgres")
    with lakebed.open(":memory:") as lake:
        _paths(lake.create_table(TABLE, "a long", partition_by=["bucket(4, a)"]), "a = 5")


def _paths(table: "Table", where: str) -> list[str]:
    return [f.file.path for f in table.scan(where=where).plan().files]


def _cases(tiny: bool) -> Sequence[Case]:
    return [
        Case(name, name, {"files": _TINY if tiny else files, "together": together})
        for name, (files, together, _) in _CASES.items()
    ]


def _judge(results: Results) -> Iterator[Verdict]:
    for case, systems in results.items():
        most = _CASES[case][2]
        for name, figures in systems.items():
            right = all(s.facts["right"] == 1 for s in figures.samples)
            yield alike(case, f"{name}: exactly the files that can match", str(right), right)
            each = figures.median_cpu_s * 1000
            yield at_most(case, f"{name}: CPU <= {most} ms", each, most, " ms")


SYSTEMS = {"lakebed": LakebedOpen("lakebed", None)}
if os.environ.get(_POSTGRES):
    SYSTEMS["lakebed-postgres"] = LakebedOpen("lakebed-postgres", _POSTGRES)

MEASURE = Measure(
    "open-plan",
    "A lake is opened and one plan is made, in a fresh process after its imports",
    SYSTEMS,
    _cases,
    _judge,
    changes=False,
)
