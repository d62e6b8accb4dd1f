"""Machines whose clocks are off, with a real object store: what they write is right or refused."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lakebed
from tests.stores import Bucket, new_bucket

pytestmark = pytest.mark.objects
_SHIM = Path(__file__).with_name("clock.c")
_APPEND = """
import json, sys
import lakebed, pyarrow as pa
uri, warehouse, options, rows = sys.argv[1:]
try:
    keys = json.loads(options)
    with lakebed.open(uri, create=True, warehouse=warehouse, storage_options=keys) as lake:
        if not lake.has_table("a.t"):
            lake.create_table("a.t", pa.schema([("id", pa.int64())]))
        commit = lake.table("a.t").append(pa.table({"id": [int(rows)]}))
        print(json.dumps([commit.published, commit.time_ms]))
except lakebed.LakebedError as error:
    print(json.dumps([error.code, error.hint]))
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler, and Linux")
    made = tmp_path_factory.mktemp("clock") / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, _SHIM, "-ldl"], check=True)
    return made


def append(shim: Path, place: Path, bucket: Bucket, row: int, ahead_s: int) -> list[object]:
    arguments = [str(place), f"{bucket.uri}/w", json.dumps(dict(bucket.options)), str(row)]
    clock = {"LD_PRELOAD": str(shim), "CLOCK_AHEAD_S": str(ahead_s)}
    done = subprocess.run(
        [sys.executable, "-c", _APPEND, *arguments],
        env=os.environ | clock,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("ahead_s", [7200, -7200])
def test_a_clock_that_is_hours_off_is_told_as_such(
    shim: Path, tmp_path: Path, ahead_s: int
) -> None:
    place, bucket = tmp_path / "lake", new_bucket()

    code, hint = append(shim, place, bucket, 1, ahead_s)

    assert code == "STORAGE_DENIED"
    assert "clock" in str(hint)
    with pytest.raises(lakebed.NotFound):
        lakebed.open(place)
    published, _ = append(shim, place, bucket, 1, 0)
    assert published is True


def test_writers_whose_clocks_differ_by_minutes_make_one_history(
    shim: Path, tmp_path: Path
) -> None:
    place, bucket = tmp_path / "lake", new_bucket()

    told = [append(shim, place, bucket, row, ahead) for row, ahead in enumerate((300, -300, 0))]

    assert [published for published, _ in told] == [True] * 3
    with lakebed.open(place, storage_options=bucket.options) as lake:
        table = lake.table("a.t")
        times = [commit.time_ms for commit in table.history()]
        assert times == sorted(times, reverse=True)
        assert len(set(times)) == len(times)
        assert sorted(table.to_arrow()["id"].to_pylist()) == [0, 1, 2]
        assert lake.check().clean
