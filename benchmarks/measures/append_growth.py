"""What a commit of one row costs when the table has many versions, against when it had few."""

import statistics
import time
from collections.abc import Iterator, Sequence

from benchmarks.measure import Case, Fact, Measure, Results, Verdict, alike, at_most
from benchmarks.measures.appending import (
    PEERS,
    PEERS_ON_POSTGRES,
    Appender,
    Appends,
    Lakebed,
    Target,
    systems,
)

_OURS: dict[str, Appender] = {"lakebed": Lakebed()}
_PEERS = {**PEERS, **PEERS_ON_POSTGRES}


def _drive(target: Target, case: Case) -> dict[str, Fact]:
    """Up to `late` versions, or as many as fit into the time; CPU of the windows before both."""
    early, late, window = case.sizes["early"], case.sizes["late"], case.sizes["window"]
    give_up = time.monotonic() + case.sizes["most_s"]
    taken: list[float] = []
    while len(taken) < late and (len(taken) < early or time.monotonic() < give_up):
        before = time.process_time()
        target.append(1000 + len(taken))
        taken.append(time.process_time() - before)
    # The mean, as some commits do the work of many: merged manifests, checkpoints.
    at_early = statistics.fmean(taken[early - window : early])
    at_late = statistics.fmean(taken[-window:])
    return {
        "commits": len(taken),
        "early_ms": at_early * 1000,
        "late_ms": at_late * 1000,
    }


def _cases(tiny: bool) -> Sequence[Case]:
    if tiny:
        sizes = {"early": 4, "late": 8, "window": 2, "most_s": 60}
        return [Case("lakebed and peers", "events", sizes, systems=["lakebed", "deltalake"])]
    ours = {"early": 300, "late": 5000, "window": 100, "most_s": 3600}
    peers = {"early": 300, "late": 1000, "window": 100, "most_s": 240}
    names = systems(list(PEERS), list(PEERS_ON_POSTGRES))
    return [
        Case("lakebed", "events", ours, systems=["lakebed"]),
        Case("peers, to 1,000 versions or 240 s", "events", peers, systems=names),
    ]


def _judge(results: Results) -> Iterator[Verdict]:
    for name, found in results.items():
        complete = all(f.facts["rows"] == f.facts["commits"] for f in found.values())
        yield alike(name, "every row is there", f"{len(found)} systems", complete)
        for system, figures in found.items():
            early, late = figures.number("early_ms"), figures.number("late_ms")
            reached = f"{system}: {early:.1f} ms, and {late:.1f} ms at {figures.facts['commits']:,}"
            if system in _OURS:
                yield at_most(name, f"{reached}: <= 1.5x", late / early, 1.5)
            else:
                yield Verdict(name, reached, f"{late / early:.3g}x", met=True)


MEASURE = Measure(
    "append-growth",
    "1-row appends to a table of many versions",
    {name: Appends(name, appender, _drive) for name, appender in {**_OURS, **_PEERS}.items()},
    _cases,
    _judge,
    changes=True,
    most=1,
)
