"""Tables on a terminal: cut to its width, never elsewhere."""

import os
import pty
import subprocess

import pytest

from lakebed.cli.output import cut_to, display_width, one_line, text_of
from tests.doors.cli.command import PROGRAM, Lakebed


def on_a_terminal(*arguments: str, columns: int) -> list[str]:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns)}
    with subprocess.Popen([*PROGRAM, *arguments], stdout=theirs, env=environment) as shown:
        os.close(theirs)
        written = b""
        try:
            while chunk := os.read(ours, 65536):
                written += chunk
        except OSError:  # a terminal whose last writer has gone
            pass
        assert shown.wait(30) == 0
    os.close(ours)
    return written.decode().splitlines()


def test_rows_are_cut_to_the_width_of_a_terminal(lake: Lakebed) -> None:
    lines = on_a_terminal("settings", columns=70)

    assert len(lines) > 10
    assert all(display_width(line) <= 70 for line in lines)
    assert any(line.endswith("…") for line in lines)


def test_nothing_is_cut_elsewhere(lake: Lakebed) -> None:
    long = "数" * 300
    lake.ok("append", "a.b", "-", "--format", "csv", "--create", stdin=f"a,b\n{long},1\n")

    assert long in lake.ok("cat", "a.b").stdout


def test_binary_formats_are_refused_on_a_terminal(orders: Lakebed) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*PROGRAM, "cat", "sales.orders", "--format", "parquet"],
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(theirs)
    os.close(ours)

    assert done.returncode == 64
    assert b"parquet is not for a terminal" in done.stderr


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("数字数", 4, "数…"),
        ("e\u0301e\u0301e", 2, "e\u0301…"),
    ],
)
def test_text_is_cut_by_what_it_shows(text: str, width: int, cut: str) -> None:
    assert cut_to(text, width) == cut
    assert display_width(cut) <= width


def test_escapes_leave_printable_text_alone() -> None:
    assert one_line("a b\u00a0Ž数") == "a b\u00a0Ž数"
    assert one_line("a\tb\r\n\x00\u202e") == "a\\tb\\r\\n\\x00\\u202e"
    assert text_of({"a": [1, None]}) == '{"a": [1, null]}'
