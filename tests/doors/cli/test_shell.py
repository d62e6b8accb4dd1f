"""The interactive shell of `lakebed sql`, on a terminal of its own."""

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.api.open import open as open_lake
from lakebed.cli.completion import Completer
from tests.doors.cli.command import PROGRAM, Lakebed

_CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")


class Terminal:
    """A shell with a person before it."""

    def __init__(self, folder: Path) -> None:
        ours, theirs = pty.openpty()
        environment = {
            **os.environ,
            "TERM": "dumb",
            "PAGER": "",
            "XDG_STATE_HOME": str(folder / "state"),
        }
        self._master = ours
        self.process = subprocess.Popen(
            [*PROGRAM, "sql"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        self.until("lakebed> ")

    def until(self, text: str, seconds: float = 60) -> str:
        """Everything shown up to this text."""
        shown, end = "", time.monotonic() + seconds
        while text not in shown:
            ready, _, _ = select.select([self._master], [], [], max(0, end - time.monotonic()))
            assert ready, f"waited for {text!r}, saw {shown!r}"
            try:
                read = os.read(self._master, 65536)
            except OSError:  # the other side is closed
                break
            shown += _CODES.sub("", read.decode("utf-8", "replace"))
        return shown

    def type(self, line: str) -> None:
        os.write(self._master, line.encode() + b"\n")

    def ask(self, line: str, prompt: str = "lakebed> ") -> str:
        self.type(line)
        return self.until(f"\n{prompt}")

    def interrupt_line(self) -> None:
        """Ctrl-C until something is shown: Python misses one just before it waits for keys."""
        for _ in range(60):
            self.process.send_signal(signal.SIGINT)
            if select.select([self._master], [], [], 1)[0]:
                return

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def terminal(orders: Lakebed) -> Iterator[Terminal]:
    opened = Terminal(orders.folder)
    yield opened
    opened.close()


def test_statement_may_have_several_lines(terminal: Terminal) -> None:
    terminal.type("SELECT id,")
    terminal.until("...> ")
    terminal.type("  name FROM sales.orders -- not the end;")
    terminal.until("...> ")
    shown = terminal.ask("ORDER BY id;")

    assert " 1  Ada" in shown
    assert " 2  NULL" in shown


def test_commands_tell_and_set(terminal: Terminal, orders: Lakebed) -> None:
    orders.write("script.sql", "SELECT 41 + 1 AS answer;")

    assert "sales.orders" in terminal.ask("\\d")
    assert "amount" in terminal.ask("\\d sales.orders")
    assert "sales" in terminal.ask("\\dn")
    assert "timing is on" in terminal.ask("\\timing")
    assert " ms" in terminal.ask("SELECT 1 AS one;")
    assert "timing is off" in terminal.ask("\\timing")
    terminal.ask("\\format csv")
    assert '"one"\n1' in terminal.ask("SELECT 1 AS one;")
    assert "formats are" in terminal.ask("\\format weird")
    assert "42" in terminal.ask("\\i script.sql")
    assert "cannot read" in terminal.ask("\\i none.sql")
    assert "\\timing" in terminal.ask("\\?")
    assert "no command" in terminal.ask("\\nope")


def test_errors_leave_the_shell_open(terminal: Terminal) -> None:
    shown = terminal.ask("SELECT nme FROM sales.orders;")

    assert "[SQL_UNKNOWN_COLUMN]" in shown
    assert "did you mean name?" in shown
    assert "[SQL_SYNTAX]" in terminal.ask("SELEC;")
    assert "7" in terminal.ask("SELECT 7 AS n;")


def test_prompt_shows_the_namespace_and_an_open_transaction(terminal: Terminal) -> None:
    terminal.ask("USE sales;", "sales> ")
    terminal.ask("BEGIN;", "sales*> ")
    terminal.ask("DELETE FROM orders;", "sales*> ")
    assert "\n0\n" in terminal.ask("SELECT count(*) AS n FROM orders;", "sales*> ")
    terminal.ask("ROLLBACK;", "sales> ")
    assert "\n3\n" in terminal.ask("SELECT count(*) AS n FROM orders;", "sales> ")


def test_ctrl_c_forgets_a_line_and_stops_a_statement(terminal: Terminal) -> None:
    terminal.type("SELECT 1,")
    terminal.until("...> ")
    terminal.interrupt_line()
    terminal.until("lakebed> ")

    terminal.type("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b;")
    time.sleep(1.5)
    terminal.process.send_signal(signal.SIGINT)
    assert "interrupted" in terminal.until("\nlakebed> ")
    assert "7" in terminal.ask("SELECT 7 AS n;")


def test_shell_ends_with_a_command_and_keeps_its_history(
    terminal: Terminal, orders: Lakebed
) -> None:
    terminal.ask("SELECT 'remember me' AS it;")
    terminal.type("\\q")

    assert terminal.process.wait(30) == 0
    history = orders.folder / "state" / "lakebed" / "sql_history"
    assert "remember me" in history.read_text()


def test_words_are_completed(orders: Lakebed) -> None:
    with open_lake(str(orders.folder)) as lake, lake.sql_session() as session:
        complete = Completer(lake, session)

        assert complete.complete("sal", "SELECT * FROM sal") == ["sales.orders"]
        assert complete.complete("am", "SELECT am FROM sales.orders") == ["amount"]
        assert "SELECT" in complete.complete("sel", "sel")
        assert complete.complete("zzz", "zzz") == []
        session.sql("USE sales")
        assert "orders" in complete.complete("ord", "SELECT * FROM ord")
        assert (complete("sal", 0), complete("sal", 1)) == ("sales.orders", None)
