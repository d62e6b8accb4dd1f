"""Commits of one row by one writer, with everything synced and both formats published."""

from collections.abc import Iterator, Sequence

from benchmarks.measure import Case, Fact, Figures, Measure, Results, Verdict, alike, at_least
from benchmarks.measures.appending import (
    PEERS,
    PEERS_ON_POSTGRES,
    POSTGRES,
    Appender,
    Appends,
    Lakebed,
    Target,
    drive_all,
    systems,
)

_OURS: dict[str, Appender] = {"lakebed": Lakebed(), "lakebed, background": Lakebed("background")}
_ON_POSTGRES: dict[str, Appender] = {
    "lakebed on postgres": Lakebed(postgres=True),
    "lakebed on postgres, background": Lakebed("background", postgres=True),
}
_PEERS = {**PEERS, **PEERS_ON_POSTGRES}
_TIMES = {"lakebed": 2, "lakebed, background": 3}


def _drive(target: Target, case: Case) -> dict[str, Fact]:
    drive_all(target, 1000, case.sizes["commits"])
    return {"commits": case.sizes["commits"]}


def _cases(tiny: bool) -> Sequence[Case]:
    commits = 5 if tiny else 200
    others = () if tiny else (*_ON_POSTGRES, *PEERS_ON_POSTGRES)
    names = systems([*_OURS, *PEERS], others)
    return [Case("one writer", "events", {"commits": commits}, systems=names)]


def _judge(results: Results) -> Iterator[Verdict]:
    for name, found in results.items():
        complete = all(f.facts["rows"] == f.facts["commits"] for f in found.values())
        yield alike(name, "every row is there", f"{len(found)} systems", complete)
        for system, figures in found.items():
            cpu_ms = figures.median_cpu_s * 1000 / figures.number("commits")
            figure = f"{_rate(figures):.0f}/s, {cpu_ms:.1f} ms"
            yield Verdict(name, f"{system}: commits a second, CPU of each", figure, met=True)
        fastest = max((s for s in found if s in _PEERS), key=lambda s: _rate(found[s]))
        for system, times in _TIMES.items():
            ratio = _rate(found[system]) / _rate(found[fastest])
            demand = f"{system}: commits/s of {fastest} >= {times}x"
            yield at_least(name, demand, ratio, times)


def _rate(figures: Figures) -> float:
    """Of the median: other work on the machine hits every system."""
    return figures.number("commits") / figures.median_wall_s


MEASURE = Measure(
    "appends",
    "1-row appends" + ("" if POSTGRES else " (no PostgreSQL: LAKEBED_TEST_POSTGRES is not set)"),
    {
        name: Appends(name, appender, _drive)
        for name, appender in {**_OURS, **_ON_POSTGRES, **_PEERS}.items()
    },
    _cases,
    _judge,
    changes=True,
)
