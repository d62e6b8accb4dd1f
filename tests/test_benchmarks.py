"""The benchmarks run, on tables so small that only their answers mean anything."""

from pathlib import Path

import pytest

from benchmarks.measure import ENVIRONMENTS, Bench
from benchmarks.measures import MEASURES
from benchmarks.report import lines
from benchmarks.run import main
from tests.lean import lean

pytestmark = pytest.mark.slow


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    for folder in (ENVIRONMENTS["peers"], ENVIRONMENTS["ducklake"]):
        if not (folder / ".ready").exists():
            pytest.fail(f"peers are missing: run `make {folder.name}/.ready`", pytrace=False)
    return Bench(tmp_path, repeat=1, tiny=True, say=lambda _: None)


@pytest.mark.parametrize("name", MEASURES)
def test_every_system_of_a_measure_gives_the_same_rows(
    bench: Bench, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = MEASURES[name]
    if name.startswith("spark"):
        monkeypatch.setenv("JDK_JAVA_OPTIONS", lean())

    results = bench.run(measure)

    expected = {c.name: set(c.systems or measure.systems) for c in measure.cases(True)}
    assert {case: set(systems) for case, systems in results.items()} == expected
    assert all(f.cpu_s > 0 for systems in results.values() for f in systems.values())
    wrong = [v for v in measure.judge(results) if v.about == "answers" and not v.met]
    assert wrong == []
    assert any("lakebed" in line for line in lines(measure, results))


def test_measures_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0

    listed = capsys.readouterr().out
    assert all(name in listed for name in MEASURES)
