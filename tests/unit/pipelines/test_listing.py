"""Files of a pattern: each once, none missed, and what was read before costs little."""

import tracemalloc
from pathlib import Path

import pytest

import lakebed
from lakebed.api.lake import Lake
from lakebed.model.runs import FileMark, RunAttachment, RunReport
from lakebed.pipelines import Pipeline, files
from lakebed.pipelines.preview import preview
from lakebed.pipelines.reading import InputWarning

MANY, FOLDERS = 10_000, 10


def pipeline(folder: Path, pattern: str) -> Pipeline:
    p = Pipeline("p", folder=folder)

    @p.step("b.raw")
    def raw(new: object = files(pattern, format="csv", schema="id long")) -> object:
        return new

    return p


def new_files(lake: Lake, folder: Path, pattern: str) -> int:
    (step,) = preview(lake, pipeline(folder, pattern))
    (said,) = step.reasons
    return int(said.removeprefix(f"{pattern}: ").removesuffix(" new files").replace(",", ""))


def mark(lake: Lake, paths: list[Path], pattern: str) -> None:
    """As a run that has read them."""
    marks = tuple(
        FileMark("b.raw", f"files:{pattern}", str(p), s.st_size, s.st_mtime_ns // 1_000_000)
        for p, s in ((p, p.stat()) for p in paths)
    )
    with lake.runs.begin("p") as run:
        run.finish(RunAttachment(run.id, "p", RunReport(), marks=marks), changed=False)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lakebed.init(tmp_path / "lake")


@pytest.mark.parametrize("pattern", ["in/**", "in/**/*", "in", "in/", "in/*"])
def test_a_file_counts_once_however_often_a_pattern_matches_it(
    lake: Lake, tmp_path: Path, pattern: str
) -> None:
    for name in ("1.csv", "a/2.csv", "a/b/3.csv", ".hidden.csv", "_SUCCESS", "a/_temporary/4.csv"):
        place = tmp_path / "in" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("1\n")

    assert new_files(lake, tmp_path, pattern) == 3


def test_one_new_file_among_ten_thousand_is_found_in_little_memory(
    lake: Lake, tmp_path: Path
) -> None:
    paths = [tmp_path / "in" / f"{n % FOLDERS}" / f"{n}.csv" for n in range(MANY)]
    for n in range(FOLDERS):
        (tmp_path / "in" / f"{n}").mkdir(parents=True)
    for path in paths:
        path.touch()
    mark(lake, paths, "in/*/*.csv")
    (tmp_path / "in" / "3" / "0-late.csv").touch()

    tracemalloc.start()
    try:
        found = new_files(lake, tmp_path, "in/*/*.csv")
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert found == 1
    assert most_bytes < 5_000_000


def test_a_file_that_changed_after_it_was_read_is_told(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "1.csv"
    path.write_text("1\n")
    mark(lake, [path], "in/*.csv")
    path.write_text("1\n2\n")

    with pytest.warns(InputWarning, match=r"1\.csv changed after it was read"):
        assert new_files(lake, tmp_path, "in/*.csv") == 0
