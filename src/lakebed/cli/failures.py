"""Failures as people and programs read them: messages on stderr, exit codes. Never a traceback."""

import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import click

from lakebed.cli.output import one_line, to_json
from lakebed.model.errors import LakebedError

OK, ERROR, FINDINGS, LATE, USAGE, INTERRUPTED = 0, 1, 2, 3, 64, 130


def run(command: Callable[[], None], arguments: Sequence[str]) -> int:
    """Run a command and say how it ended."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    report = _Report(json="--json" in options, verbose=_is_verbose(options))
    _never_fail_to_encode()
    with _told_on_stderr():
        try:
            code = _run(command, report)
            _flush()
        except BrokenPipeError:
            _leave_quietly()
            code = OK
    return code


def _run(command: Callable[[], None], report: "_Report") -> int:
    try:
        command()
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt, EOFError):
        report.tell("interrupted", code="INTERRUPTED")
        return INTERRUPTED
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "lakebed"
        report.tell(error.format_message(), code="USAGE", hint=f"see {path} --help")
        return USAGE
    except click.ClickException as error:
        report.tell(error.format_message(), code="ERROR")
        return ERROR
    except LakebedError as error:
        report.tell(error.message, code=error.code, hint=error.hint, context=error.context)
        return ERROR
    except BrokenPipeError:
        raise
    except OSError as error:
        report.tell(str(error), code="SYSTEM_ERROR", hint="see what the operating system says")
        return ERROR
    except Exception as error:
        what = f"this is a defect of lakebed, not of your input: {type(error).__name__}: {error}"
        report.tell(what, code="DEFECT", hint="please report it, with what -v shows")
        report.tell_traceback()
        return ERROR
    return OK


class _Report:
    def __init__(self, *, json: bool, verbose: bool) -> None:
        self._json = json
        self._verbose = verbose

    def tell(
        self,
        message: str,
        *,
        code: str,
        hint: str = "",
        context: Mapping[str, object] | None = None,
    ) -> None:
        if self._json:
            error = {"code": code, "message": message, "hint": hint, "context": context or {}}
            click.echo(to_json({"error": error}), err=True)
            return
        for line in error_lines(message, code, hint):
            click.echo(line, err=True)

    def tell_traceback(self) -> None:
        if self._verbose:
            click.echo(traceback.format_exc(), err=True)


def error_lines(message: str, code: str, hint: str) -> Iterator[str]:
    """What happened with its code, the place in the text if it shows one, what to do."""
    first, *place = message.split("\n")
    yield f"error: {one_line(first)} [{code}]"
    yield from map(one_line, place)
    if hint:
        yield f"hint: {one_line(hint)}"


def _is_verbose(options: Sequence[str]) -> bool:
    return any(o == "--verbose" or (o.startswith("-v") and set(o[1:]) == {"v"}) for o in options)


def _never_fail_to_encode() -> None:
    """A terminal that cannot show a character gets its escape, not a failure."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextmanager
def _told_on_stderr() -> Iterator[None]:
    """Warnings and log records as lines of stderr, for as long as a command runs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LowerCase("%(levelname)s: %(message)s"))
    logger = logging.getLogger("lakebed")
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _show_warning
            yield
    finally:
        logger.removeHandler(handler)


class _LowerCase(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        record.levelname = record.levelname.lower()
        return super().format(record)


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    if issubclass(category, UserWarning):  # others are for developers
        click.echo(f"warning: {one_line(str(message))}", err=True)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _leave_quietly() -> None:
    """The reader has gone: nothing more is written, and Python's own last flush finds no pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(nowhere, stream.fileno())
        except (AttributeError, OSError, ValueError):
            continue
    os.close(nowhere)
