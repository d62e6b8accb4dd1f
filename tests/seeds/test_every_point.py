"""docs/seeds.md and the tests agree: each point has its line and the tests that it names."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "seeds.md"
BUILT = {
    "ST": [
        *(*range(1, 7), *range(10, 15), *range(20, 24), *range(30, 35), *range(40, 45)),
        *(55, 60, 63, 64),
    ],
    "PL": [*range(40, 47), *range(50, 55), 80],
    "IL": [*range(1, 5), *range(10, 14), 20, 21],
    "DL": [1, 2, 3, 10, 11, 12, *range(20, 27), *range(30, 35), 51, 53],
}
DROPPED = ["ST-35"]  # the line says why
POINTS = [f"{seed}-{number:02}" for seed, numbers in BUILT.items() for number in numbers]
LINES = {m[1]: m[0] for m in re.finditer(r"(?m)^\| ([A-Z]{2}-\d\d) \|.*$", PAGE.read_text("utf-8"))}
ON_SPARK = HERE.parent / "spark" / "test_seeds.py"
TESTS = {
    f"tests/{file.parent.name}/{file.name}::{name}"
    for file in (*HERE.glob("test_*.py"), ON_SPARK)
    for name in re.findall(r"(?m)^def (test_\w+)", file.read_text("utf-8"))
}


@pytest.mark.parametrize("point", POINTS)
def test_the_point_has_its_line_and_every_test_it_names_is_its_own(point: str) -> None:
    named = re.findall(r"`(tests/(?:seeds|spark)/test_\w+\.py::\w+)`", LINES[point])

    own = f"::test_{point.lower().replace('-', '_')}_"
    assert named
    assert set(named) == {test for test in TESTS if own in test}


@pytest.mark.parametrize("point", DROPPED)
def test_a_point_that_was_dropped_says_so(point: str) -> None:
    assert "tests/" not in LINES[point]
    assert "dropped" in LINES[point]


def test_no_line_is_about_a_point_nobody_shows() -> None:
    assert sorted(LINES) == sorted([*POINTS, *DROPPED])
