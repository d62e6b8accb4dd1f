"""A few rows deleted from a small table: what the operation itself costs."""

from collections.abc import Iterator, Sequence

from benchmarks.measure import Case, Measure, Results, Verdict, alike, at_most
from benchmarks.measures.bare_delete import BareDelete
from benchmarks.measures.deleting import DeltalakeDelete, LakebedDelete

_SIZES = ((10, 100, 9), (100, 10_000, 30), (1_000, 10_000, 83))  # with the most milliseconds of CPU
_FORMS = {"range": "id < {gone}", "scattered": "id % {step} = 0"}


def _cases(tiny: bool) -> Sequence[Case]:
    return [
        Case(
            f"{gone:,} of {rows:,} rows, {form}",
            f"numbers-{rows}",
            {"rows": rows, "gone": gone, "most_ms": most_ms},
            text.format(gone=gone, step=rows // gone),
        )
        for gone, rows, most_ms in (_SIZES[:1] if tiny else _SIZES)
        for form, text in _FORMS.items()
    ]


def _judge(results: Results) -> Iterator[Verdict]:
    cases = {case.name: case for case in _cases(False)}
    for name, systems in results.items():
        ours, theirs = systems["lakebed"], systems["deltalake"]
        left = cases[name].sizes["rows"] - cases[name].sizes["gone"]
        most_ms = cases[name].sizes["most_ms"]
        counts = {figures.facts["rows"] for figures in systems.values()} == {left}
        yield alike(name, "the same rows are left", f"{left:,}", counts)
        yield at_most(name, "CPU, part of deltalake's <= 0.5", ours.cpu_s / theirs.cpu_s, 0.5)
        yield at_most(name, f"CPU <= {most_ms} ms", ours.cpu_s * 1000, most_ms, " ms")
        yield at_most(name, "data files written: 0", ours.number("files_added"), 0, "")


MEASURE = Measure(
    "small-delete",
    "Delete a few rows of a small table",
    {
        "lakebed": LakebedDelete(),
        "deltalake": DeltalakeDelete(),
        "bare calls": BareDelete(),
    },
    _cases,
    _judge,
    changes=True,
)
