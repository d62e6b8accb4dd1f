"""10,000 rows deleted all over a table of 30 million, the size of posixlake's stress test."""

from collections.abc import Iterator, Sequence

from benchmarks.measure import Case, Measure, Results, Verdict, alike, at_least, at_most
from benchmarks.measures.deleting import DeltalakeDelete, LakebedDelete

_POSIXLAKE_S = 716.7


def _cases(tiny: bool) -> Sequence[Case]:
    rows, gone = (30_000, 10) if tiny else (30_000_000, 10_000)
    return [
        Case(
            f"{gone:,} of {rows:,} rows",
            "numbers",
            {"rows": rows, "gone": gone},
            f"id % {rows // gone} = 7",
        )
    ]


def _judge(results: Results) -> Iterator[Verdict]:
    for name, systems in results.items():
        ours, theirs = systems["lakebed"], systems["deltalake"]
        counts = ours.facts["rows"] == theirs.facts["rows"]
        yield alike(name, "the same rows are left", f"{ours.facts['rows']:,}", counts)
        yield at_most(name, "1/50 of posixlake: CPU <= 14.3 s", ours.cpu_s, _POSIXLAKE_S / 50, " s")
        yield at_least(name, "CPU, times less than deltalake: >= 5", theirs.cpu_s / ours.cpu_s, 5)
        yield at_most(name, "data files written: 0", ours.number("files_added"), 0, "")


MEASURE = Measure(
    "scattered-delete",
    "Delete 10,000 scattered rows of 30 million",
    {"lakebed": LakebedDelete(), "deltalake": DeltalakeDelete()},
    _cases,
    _judge,
    changes=True,
)
