"""The wheel is pure, typed and small at its base, and the README runs on nothing but it."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", folder, REPO], check=True)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_is_pure_and_typed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    assert wheel.name.endswith("-py3-none-any.whl")
    assert "lakebed/py.typed" in names
    assert "pyspark_lakebed/__init__.py" in names  # Spark finds it by this name
    assert all(name.startswith(("lakebed/", "pyspark_lakebed/", "lakebed-")) for name in names)


def test_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    source = REPO / "src"
    wanted = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }

    with zipfile.ZipFile(wheel) as archive:
        missing = wanted - set(archive.namelist())

    assert not missing


def test_readme_runs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "empty", with_pip=True)
    python = tmp_path / "empty" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True)

    done = subprocess.run(
        [python, REPO / "scripts" / "run-docs", REPO / "README.md"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
