"""The interactive shell: statements over several lines, history, completion, commands with \\."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lakebed.cli.completion import Completer
from lakebed.cli.failures import error_lines
from lakebed.cli.output import say
from lakebed.cli.results import show_result
from lakebed.cli.stopwatch import Stopwatch
from lakebed.model.errors import LakebedError

if TYPE_CHECKING:
    from lakebed.api.lake import Lake
    from lakebed.api.sql.session import SqlSession

_HISTORY_LINES = 10_000
_FORMS = ("table", "csv", "json", "jsonl")


class Shell:
    def __init__(self, lake: "Lake", session: "SqlSession", form: str, *, timing: bool) -> None:
        self._lake = lake
        self._session = session
        self._form = form if form in _FORMS else "table"
        self._watch = Stopwatch(wanted=timing)
        self._paging = True
        self._over = False

    def run(self) -> None:
        """Until \\q or the end of the input; Ctrl-C forgets a statement, or stops a running one."""
        say(f"lakebed SQL on {self._lake.uri}. Statements end with ; and \\? lists commands.")
        with _line_editing(Completer(self._lake, self._session)):
            while not self._over:
                try:
                    text = self._read()
                except KeyboardInterrupt:
                    say("")
                    continue
                except EOFError:
                    say("")
                    return
                self._do(text)

    def _read(self) -> str:
        """Lines up to one that ends a statement, or one command."""
        from lakebed.sql.source import ends_statement

        lines: list[str] = []
        while True:
            lines.append(input(self._prompt(bool(lines))))
            text = "\n".join(lines).strip()
            if not text or text.startswith("\\") or ends_statement(text):
                return text

    def _prompt(self, inside: bool) -> str:
        if inside:
            return "   ...> "
        mark = "*" if self._session.in_transaction else ""
        return f"{self._session.namespace or 'lakebed'}{mark}> "

    def _do(self, text: str) -> None:
        if not text:
            return
        try:
            if text.startswith("\\"):
                self._command(text)
            else:
                self._statements(text)
        except LakebedError as error:
            for line in error_lines(error.message, error.code, error.hint):
                say(line)
        except KeyboardInterrupt:
            say("interrupted")

    def _statements(self, text: str) -> None:
        for result in self._watch.each(self._session.results(text)):
            with self._paged():
                show_result(result, self._form, limit=None)

    @contextmanager
    def _paged(self) -> Iterator[None]:
        """Through the pager of the user, when there is one and somebody is looking."""
        pager = os.environ.get("PAGER") if self._paging and sys.stdout.isatty() else None
        if not pager:
            yield
            return
        import subprocess

        less = {**os.environ, "LESS": os.environ.get("LESS", "-FRSX")}
        with subprocess.Popen(shlex.split(pager), stdin=subprocess.PIPE, env=less) as process:  # noqa: S603 - the user's own pager
            assert process.stdin is not None
            saved = os.dup(1)
            os.dup2(process.stdin.fileno(), 1)
            try:
                with suppress(BrokenPipeError):
                    yield
                    sys.stdout.flush()
            finally:
                os.dup2(saved, 1)
                os.close(saved)
                process.stdin.close()

    def _command(self, text: str) -> None:
        name, _, rest = text[1:].partition(" ")
        command = COMMANDS.get(name)
        if command is None:
            say(f"there is no command \\{name}; \\? lists them")
            return
        command.run(self, rest.strip().rstrip(";"))

    def describe(self, name: str) -> None:
        if not name:
            self._statements("SHOW TABLES")
            self._statements("SHOW VIEWS")
        else:
            self._statements(f"DESCRIBE EXTENDED {name}")

    def namespaces(self, _: str) -> None:
        self._statements("SHOW SCHEMAS")

    def toggle_timing(self, _: str) -> None:
        self._watch.wanted = not self._watch.wanted
        say(f"timing is {'on' if self._watch.wanted else 'off'}")

    def toggle_paging(self, _: str) -> None:
        self._paging = not self._paging
        say(f"paging is {'on' if self._paging else 'off'}")

    def set_form(self, form: str) -> None:
        if form not in _FORMS:
            say(f"formats are: {', '.join(_FORMS)}")
            return
        self._form = form

    def run_file(self, path: str) -> None:
        try:
            text = Path(path).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            say(f"cannot read {path}: {error}")
            return
        self._statements(text)

    def help(self, _: str) -> None:
        for name, command in COMMANDS.items():
            click.echo(f"\\{name:<8} {command.help}")

    def quit(self, _: str) -> None:
        self._over = True


@contextmanager
def _line_editing(completer: Completer) -> Iterator[None]:
    """History and completion where Python has readline; plain lines elsewhere."""
    try:
        import readline
    except ImportError:
        yield
        return
    path = _history_path()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        readline.read_history_file(path)
    readline.set_history_length(_HISTORY_LINES)
    readline.set_completer(completer)
    readline.set_completer_delims(" \t\n,;()=<>+-*/")
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        readline.set_completer(None)
        with suppress(OSError):
            readline.write_history_file(path)


def _history_path() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "lakebed" / "sql_history"


@dataclass(frozen=True, slots=True)
class _Command:
    help: str
    run: Callable[[Shell, str], None]


COMMANDS = {
    "d": _Command("tables and views, or one of them: \\d ns.table", Shell.describe),
    "dn": _Command("namespaces", Shell.namespaces),
    "timing": _Command("tell how long statements take, or not", Shell.toggle_timing),
    "pager": _Command("show rows through $PAGER, or not", Shell.toggle_paging),
    "format": _Command("table, csv, json or jsonl", Shell.set_form),
    "i": _Command("run the statements of a file", Shell.run_file),
    "?": _Command("this list", Shell.help),
    "q": _Command("leave", Shell.quit),
}
