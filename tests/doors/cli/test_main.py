"""What all commands share: help, usage errors, exit codes, failures, interrupts."""

import json
import signal
import subprocess
import sys

import click
import pytest

import lakebed as package
from lakebed.api.lake import Lake
from lakebed.cli.main import main
from tests.doors.cli.command import PROGRAM, Lakebed, program


def test_version_is_data(lakebed: Lakebed) -> None:
    assert lakebed.ok("--version").stdout == f"lakebed {package.__version__}\n"


def test_help_lists_the_commands_and_needs_no_lake(lakebed: Lakebed) -> None:
    text = lakebed.ok("--help").stdout

    assert all(name in text for name in main.commands)


@pytest.mark.parametrize("command", ["init", "table", "append", "settings"])
def test_every_command_explains_itself(lakebed: Lakebed, command: str) -> None:
    assert f"lakebed {command}" in lakebed.ok(command, "--help").stdout


def test_every_command_says_what_it_does_and_takes_json() -> None:
    def walk(command: click.Command) -> None:
        assert command.help, command.name
        assert "--json" in {o for p in command.params for o in p.opts}, command.name
        for below in getattr(command, "commands", {}).values():
            walk(below)

    walk(main)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-command"],
        ["table"],
        ["table", "no-such-command"],
        ["table", "create"],
        ["table", "list", "--no-such-option"],
        ["--no-such-option"],
        ["cat", "a.b", "--limit", "-1"],
        ["cat", "a.b", "--version", "one"],
        ["cat", "a.b", "--format", "xml"],
        ["history", "a.b", "too-many"],
    ],
)
def test_wrong_usage_exits_64_with_nothing_on_stdout(
    lakebed: Lakebed, arguments: list[str]
) -> None:
    answer = lakebed(*arguments)

    assert answer.exit_code == 64
    assert answer.stdout == ""
    assert "--help" in answer.stderr


def test_wrong_usage_is_an_object_under_json(lakebed: Lakebed) -> None:
    answer = lakebed("table", "--json", "nope")

    assert answer.exit_code == 64
    assert answer.error["code"] == "USAGE"
    assert answer.error["hint"] == "see lakebed table --help"


def test_failure_is_one_json_object_on_stderr(orders: Lakebed) -> None:
    answer = orders("--json", "table", "show", "a.b")

    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert answer.error == {
        "code": "TABLE_NOT_FOUND",
        "message": "there is no table a.b",
        "hint": "`lakebed table list` shows the tables",
        "context": {"table": "a.b"},
    }


def test_defect_is_one_line_and_no_traceback(
    lake: Lakebed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(Lake, "tables", fail)

    plain, asked = lake("table", "list"), lake("table", "list", "-v")

    assert plain.exit_code == asked.exit_code == 1
    assert plain.stderr.startswith("error: this is a defect of lakebed")
    assert "ZeroDivisionError: oh [DEFECT]\nhint: " in plain.stderr
    assert "Traceback" not in plain.stderr
    assert "Traceback" in asked.stderr
    assert plain.stdout == asked.stdout == ""


def test_damaged_database_is_an_error_not_a_defect(orders: Lakebed) -> None:
    for leftover in orders.folder.glob("lakebed.db-*"):
        leftover.unlink()
    (orders.folder / "lakebed.db").write_bytes(b"this is no database, but long enough" * 100)

    answer = orders("table", "list", "--json")

    assert answer.exit_code == 1
    assert answer.error["code"].startswith("DATABASE_")
    assert answer.error["hint"]


def test_argument_that_is_not_text_is_an_error_not_a_defect(lake: Lakebed) -> None:
    done = subprocess.run(
        [*PROGRAM, "--json", "table", "show", b"a.\xff"], capture_output=True, check=False
    )

    assert done.returncode == 1
    assert json.loads(done.stderr)["error"]["code"] == "INVALID_NAME"


def test_interrupt_exits_130_and_leaves_nothing(orders: Lakebed) -> None:
    with subprocess.Popen(
        [*PROGRAM, "-v", "append", "sales.orders", "-", "--format", "csv"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as waiting:
        assert waiting.stdin is not None
        assert waiting.stderr is not None
        waiting.stdin.write(b"id,name,amount\n1,a,2\n" * 10)
        waiting.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(3)  # it reads until its input ends
        waiting.send_signal(signal.SIGINT)
        code = waiting.wait(30)
        told = waiting.stderr.read()

    assert code == 130
    assert b"Traceback" not in told
    assert b"interrupted" in told
    assert orders.json("table", "list")[0]["rows"] == 3
    assert orders("check").exit_code == 0


def test_closed_pipe_is_quiet_for_lists_and_help(orders: Lakebed) -> None:
    for arguments in (["--help"], ["settings"], ["history", "sales.orders", "--json"]):
        line = f"{sys.executable} -m lakebed {' '.join(arguments)} | head -c 1 >/dev/null"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line], capture_output=True, check=False
        )

        assert (done.returncode, done.stderr) == (0, b"")


def test_output_survives_a_locale_that_cannot_show_it(orders: Lakebed) -> None:
    plain = program("cat", "sales.orders", variables={"PYTHONIOENCODING": "ascii"})
    data = program(
        *("cat", "sales.orders", "--format", "jsonl"), variables={"PYTHONIOENCODING": "ascii"}
    )

    assert plain.returncode == 0
    assert "Žofie".encode() in data.stdout


def test_verbose_tells_what_is_done(orders: Lakebed) -> None:
    quiet, loud = orders.ok("check"), orders.ok("check", "-v")

    assert "info: checking sales.orders" not in quiet.stderr
    assert "info: checking sales.orders" in loud.stderr


def test_installed_program_and_module_are_the_same(lakebed: Lakebed) -> None:
    done = program("--version")

    assert done.stdout.decode().split() == ["lakebed", package.__version__]


def test_completion_for_the_shell_is_offered(lakebed: Lakebed) -> None:
    done = program("", variables={"_LAKEBED_COMPLETE": "bash_source"})

    assert done.returncode == 0
    assert b"_LAKEBED_COMPLETE" in done.stdout
