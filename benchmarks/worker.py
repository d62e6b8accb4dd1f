"""A process that does jobs as they are asked for, one after the other."""

import json
import os
import select
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_MOST_SECONDS = 7200
_TOLD = 20_000  # characters of what a process printed that are shown when it fails


class Worker:
    """Orders go to its standard input; answers come back by a pipe, since libraries print."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        reading, writing = os.pipe()
        self._answers = os.fdopen(reading)
        self._log = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 - lives as long as we do
        self._process = subprocess.Popen(
            [*command, str(writing)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=(writing,),
        )
        os.close(writing)

    def ask(self, order: Mapping[str, object], where: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed(where) from None
        if not select.select([self._answers], [], [], _MOST_SECONDS)[0]:
            raise TimeoutError(f"{where} takes more than {_MOST_SECONDS:,} seconds")
        answer = self._answers.readline()
        if not answer:
            raise self._failed(where)
        found: dict[str, Any] = json.loads(answer)
        return found

    def end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()
        self._log.close()

    def _failed(self, where: str) -> RuntimeError:
        self._process.wait(60)
        self._log.seek(0)
        return RuntimeError(f"{where} failed\n{self._log.read()[-_TOLD:]}")
