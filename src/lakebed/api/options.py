"""What every write takes besides its rows."""

import getpass
import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypedDict

import orjson

from lakebed.core.tally import SUMMARY_NAMES
from lakebed.model.errors import InvalidInput
from lakebed.model.names import is_text
from lakebed.model.settings import Value, find_setting, parse_setting

_MAX_TEXT = 100_000
_FAR = 2**63


class CommitOptions(TypedDict, total=False):
    """Keyword arguments of every write."""

    message: str | None  # why, for people
    author: str | None  # who, for people; the operating system's user when left out
    idempotency_key: str | None  # the same key again = the same answer again, nothing written
    txn: tuple[str, int] | None  # (application, number): a number not above the last adds nothing
    isolation: str | None  # write_serializable or serializable
    publish: str | None  # commit, background or service
    summary: Mapping[str, str] | None  # entries for the commit's summary
    settings: Mapping[str, object] | None  # for this call: write.parquet.compression-codec, …
    branch: str | None  # write to this branch, not to main


@dataclass(frozen=True, slots=True)
class Options:
    """The same, checked."""

    message: str | None
    author: str
    idempotency_key: str | None
    txn: tuple[str, int] | None
    isolation: str | None
    publish: str | None
    summary: Mapping[str, str] | None
    settings: Mapping[str, Value]
    branch: str | None
    started_s: float  # when the call began, by the clock that never goes back

    @property
    def duration_ms(self) -> int:
        """Since the call began."""
        return round(1000 * (time.monotonic() - self.started_s))


def check_options(given: CommitOptions) -> Options:
    unknown = set(given) - set(CommitOptions.__annotations__)
    if unknown:
        raise InvalidInput(
            f"unknown option {min(unknown)!r}",
            hint=f"writes take: {', '.join(CommitOptions.__annotations__)}",
        )
    started_s = time.monotonic()
    for name in ("message", "author", "idempotency_key", "branch"):
        _check_text(name, given.get(name))
    _check_choice("isolation", given.get("isolation"), ("write_serializable", "serializable"))
    _check_choice("publish", given.get("publish"), ("commit", "background", "service"))
    return Options(
        given.get("message"),
        given.get("author") or _user(),
        given.get("idempotency_key"),
        _check_txn(given.get("txn")),
        given.get("isolation"),
        given.get("publish"),
        _check_summary(given.get("summary")),
        _check_settings(given.get("settings")),
        given.get("branch"),
        started_s,
    )


def refuse_keys(given: CommitOptions) -> CommitOptions:
    """Options of many commits: what stands for a single one has no place among them."""
    for name in ("idempotency_key", "txn"):
        if given.get(name) is not None:
            raise InvalidInput(
                f"{name} stands for one commit, and this makes many", hint=f"leave {name} out"
            )
    return given


def digest_of(operation: str, *parts: object) -> str:
    """What makes two requests with one idempotency key the same request."""
    texts = [str(part).encode(errors="backslashreplace").decode() for part in parts]
    return hashlib.sha256(orjson.dumps([operation, *texts])).hexdigest()


def check_names(argument: str, names: object) -> tuple[str, ...]:
    """A list of names; one text is not a list of its letters."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidInput(f"{argument} must be a list of names", hint=f"{argument}=['id']")
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str):
            raise InvalidInput(f"{argument} holds {name!r}, no name", hint=f"{argument}=['id']")
    return listed


def check_number(argument: str, number: object) -> int:
    """A whole number that the database can hold; True is none."""
    if isinstance(number, bool) or not isinstance(number, int) or not -_FAR < number < _FAR:
        raise InvalidInput(f"{argument} {number!r} is not a whole number", hint="give a number")
    return number


def _user() -> str:
    return _user_by(*map(os.environ.get, ("LOGNAME", "USER", "LNAME", "USERNAME")))


@lru_cache
def _user_by(*_: str | None) -> str:
    """Without a variable it takes a look at the system's users: not for every commit."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


def _check_text(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not is_text(value) or not 1 <= len(value) <= _MAX_TEXT:
        raise InvalidInput(
            f"{name} must be valid text of 1 to {_MAX_TEXT} characters without NUL",
            hint=f"give another {name}",
        )


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value is not None and value not in choices:
        raise InvalidInput(f"{name} is {value!r}", hint=f"use one of: {', '.join(choices)}")


def _check_txn(txn: object) -> tuple[str, int] | None:
    if txn is None:
        return None
    if not isinstance(txn, tuple | list) or len(txn) != 2:
        raise InvalidInput("txn is not a pair", hint="give txn=(application name, number)")
    app, number = txn
    _check_text("the application of txn", app)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**63:
        raise InvalidInput(f"txn number {number!r} is not a whole number from 0", hint="count up")
    return str(app), number


def _check_settings(settings: object) -> Mapping[str, Value]:
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise InvalidInput("settings must map names to values", hint="settings={'name': value}")
    checked = {}
    for name, value in settings.items():
        setting = find_setting(name)
        if not setting.per_table:
            raise InvalidInput(
                f"{name} cannot be set for one call", hint="set it for the lake or when opening it"
            )
        checked[setting.name] = parse_setting(setting, value)
    return checked


def _check_summary(summary: object) -> Mapping[str, str] | None:
    if summary is None:
        return None
    if not isinstance(summary, Mapping) or not all(
        k and is_text(k) and is_text(v) for k, v in summary.items()
    ):
        raise InvalidInput("summary must map text to text", hint="give summary={'key': 'value'}")
    ours = SUMMARY_NAMES & summary.keys()
    if ours:
        raise InvalidInput(
            f"summary entry {min(ours)!r} is counted by lakebed", hint="choose another name"
        )
    return dict(summary)
