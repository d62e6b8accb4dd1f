"""Runs `lakebed` as a user would: in this process for speed, or as a program of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from lakebed.cli.main import main

PROGRAM = [sys.executable, "-m", "lakebed"]


@dataclass(frozen=True)
class Answer:
    exit_code: int
    stdout: str
    stderr: str
    stdout_bytes: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def error(self) -> dict[str, Any]:
        """The one JSON object of a failure under --json."""
        found: dict[str, Any] = json.loads(self.stderr)["error"]
        return found


class Lakebed:
    """A folder to work in and a way to call commands there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str | Path, stdin: bytes | str = b"") -> Answer:
        result = CliRunner().invoke(main, [str(a) for a in arguments], input=stdin)
        return Answer(result.exit_code, result.stdout, result.stderr, result.stdout_bytes)

    def ok(self, *arguments: str | Path, stdin: bytes | str = b"") -> Answer:
        answer = self(*arguments, stdin=stdin)
        assert answer.exit_code == 0, answer.stderr
        return answer

    def json(self, *arguments: str | Path, stdin: bytes | str = b"") -> Any:
        return self.ok(*arguments, "--json", stdin=stdin).json

    def rows(self, table: str, *options: str) -> Any:
        return self.json("cat", table, *options)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


def program(*arguments: str | Path, **options: Any) -> "subprocess.CompletedProcess[bytes]":
    """The real program, in a process of its own."""
    run = [*PROGRAM, *map(str, arguments)]
    environment = {**os.environ, **options.pop("variables", {})}
    return subprocess.run(run, capture_output=True, check=False, env=environment, **options)
