"""What was measured, as tables in Markdown and as JSON."""

import os
import platform
from collections.abc import Iterator, Mapping

from benchmarks.measure import Measure, Results


def lines(measure: Measure, results: Results) -> Iterator[str]:
    yield f"### {measure.title}"
    yield ""
    yield "| case | system | CPU min | CPU median | wall min | peak memory |"
    yield "|---|---|---:|---:|---:|---:|"
    for case, systems in results.items():
        for name, figures in systems.items():
            times = (figures.cpu_s, figures.median_cpu_s, figures.wall_s)
            shown = " | ".join(_seconds(t) for t in times)
            yield f"| {case} | {name} | {shown} | {figures.peak_bytes / 1e6:,.0f} MB |"
    yield ""
    yield "| case | must show | measured | |"
    yield "|---|---|---:|---|"
    for verdict in measure.judge(results):
        met = "met" if verdict.met else "**missed**"
        yield f"| {verdict.case} | {verdict.demand} | {verdict.figure} | {met} |"
    yield ""


def _seconds(value: float) -> str:
    return f"{value:,.2f} s" if value >= 1 else f"{value * 1000:,.1f} ms"


def machine() -> str:
    system = f"{platform.system()} {platform.machine()}"
    return f"{os.cpu_count()} cores, {system}, Python {platform.python_version()}"


def as_json(measures: Mapping[str, Measure], results: Mapping[str, Results]) -> dict[str, object]:
    return {
        "machine": machine(),
        "measures": {
            name: {
                "cases": {
                    case: {
                        system: {
                            "cpu_s": [s.cpu_s for s in figures.samples],
                            "wall_s": [s.wall_s for s in figures.samples],
                            "peak_bytes": [s.peak_bytes for s in figures.samples],
                        }
                        for system, figures in systems.items()
                    }
                    for case, systems in found.items()
                },
                "verdicts": [
                    {"case": v.case, "demand": v.demand, "figure": v.figure, "met": v.met}
                    for v in measures[name].judge(found)
                ],
            }
            for name, found in results.items()
        },
    }
