"""The command: python -m benchmarks.run. Lists measures, runs them, prints tables."""

import argparse
import json
import sys
from pathlib import Path

from benchmarks.data import default_folder
from benchmarks.measure import Bench, Measure, Results
from benchmarks.measures import MEASURES
from benchmarks.report import as_json, lines, machine


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    if options.list:
        for name, measure in MEASURES.items():
            print(f"{name:20}{measure.title}")
        return 0
    sizes = dict(options.size)
    bench = Bench(options.data, repeat=options.repeat, tiny=options.tiny, say=_say, sizes=sizes)
    print(f"{machine()}; every call {options.repeat} times\n")
    found: dict[str, Results] = {}
    for name, measure in MEASURES.items():
        if not options.only or name in options.only:
            found[name] = bench.run(measure, options.case)
            print("\n".join(lines(measure, found[name])), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(MEASURES, found), indent=2) + "\n")
    return 1 if any(_is_wrong(MEASURES[name], results) for name, results in found.items()) else 0


def _is_wrong(measure: Measure, results: Results) -> bool:
    """A missed time is reported; other rows than a peer's are a failure."""
    return any(v.about == "answers" and not v.met for v in measure.judge(results))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__)
    parser.add_argument("--list", action="store_true", help="list the measures")
    parser.add_argument("--only", action="append", choices=list(MEASURES), help="run this one")
    parser.add_argument(
        "--case",
        action="append",
        default=[],
        help="only cases whose names contain this, or another",
    )
    parser.add_argument("--repeat", type=int, default=5, help="calls of each system (default: 5)")
    parser.add_argument("--tiny", action="store_true", help="tiny tables: does everything run?")
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        type=_size,
        metavar="NAME=NUMBER",
        help="in place of a case's own, such as thousandths=500 of TPC-H's scale factor 1",
    )
    parser.add_argument("--json", type=Path, help="write every sample to this file, too")
    parser.add_argument(
        "--data", type=Path, default=default_folder(), help="where data is kept (default: a cache)"
    )
    return parser


def _size(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    return name, int(number)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
