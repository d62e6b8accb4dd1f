"""Answers on stdout, as JSON or as aligned text; messages on stderr."""

import json
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from shutil import get_terminal_size
from typing import Any

import click

Record = Mapping[str, Any]
_LEAST_WIDTH = 8
_GAP = "  "


def say(message: str) -> None:
    click.echo(message, err=True)


def count_of(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def to_json(value: object, *, indent: int | None = None) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False, indent=indent)


def show_json(value: object) -> None:
    write_bytes(to_json(value, indent=2).encode("utf-8", "backslashreplace") + b"\n")


def write_bytes(data: bytes, *, flush: bool = True) -> None:
    """To stdout as it is: what programs read is UTF-8 whatever the locale."""
    stream = sys.stdout
    if stream is not None:
        stream.buffer.write(data)
        if flush:
            stream.buffer.flush()


def answer(record: Record, message: str, *, as_json: bool) -> None:
    """What an action did: a record for programs, a sentence for people."""
    if as_json:
        show_json(record)
    else:
        say(message)


def show_list(records: Sequence[Record], *, as_json: bool, columns: Sequence[str] = ()) -> None:
    """A JSON array of the records, or a table of the columns worth a person's look."""
    if as_json:
        show_json([*records])
        return
    names = list(columns or (records[0] if records else ()))
    if records:
        show_table(names, ([record[name] for name in names] for record in records))


def show_record(record: Record, *, as_json: bool) -> None:
    if as_json:
        show_json(dict(record))
        return
    known = {name: value for name, value in record.items() if value not in (None, [], {})}
    width = max(display_width(name) for name in known)
    for name, value in known.items():
        lines = [text_of(v) for v in value] if isinstance(value, list | tuple) else [text_of(value)]
        for number, line in enumerate(lines):
            click.echo(f"{pad(name if number == 0 else '', width)}{_GAP}{line}".rstrip())


def show_table(names: Sequence[str], rows: Iterable[Sequence[object]], *, null: str = "") -> None:
    """Aligned columns; values are cut only on a terminal that is too narrow."""
    listed = [list(row) for row in rows]
    cells = [[one_line(name) for name in names]]
    cells += [[text_of(value, null) for value in row] for row in listed]
    widths = column_widths(cells)
    right = [is_numeric([row[n] for row in listed]) for n in range(len(names))]
    show_rows(cells, widths, right)


def show_rows(cells: Iterable[Sequence[str]], widths: Sequence[int], right: Sequence[bool]) -> None:
    cut = sys.stdout.isatty()
    for row in cells:
        shown = [
            pad(cut_to(cell, width) if cut else cell, width, right=align)
            for cell, width, align in zip(row, widths, right, strict=True)
        ]
        click.echo(_GAP.join(shown).rstrip())


def column_widths(cells: Sequence[Sequence[str]]) -> list[int]:
    """What each column needs; on a terminal the widest give way until a row fits."""
    widths = [max(map(display_width, column)) for column in zip(*cells, strict=True)]
    if not sys.stdout.isatty():
        return widths
    room = get_terminal_size().columns - len(_GAP) * (len(widths) - 1)
    cap = max(widths)
    while cap > _LEAST_WIDTH and sum(min(width, cap) for width in widths) > room:
        cap -= 1
    return [min(width, cap) for width in widths]


def is_numeric(values: Iterable[object]) -> bool:
    known = [v for v in values if v is not None]
    return bool(known) and all(
        isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in known
    )


def text_of(value: object, null: str = "") -> str:
    match value:
        case None:
            return null
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case str():
            return one_line(value)
        case dict() | list() | tuple():
            return one_line(to_json(value))
        case _:
            return one_line(str(value))


def one_line(text: str) -> str:
    """Control characters as escapes: a value can neither break a line nor command a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    if unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode()


def display_width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(_character_width(c) for c in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad(text: str, width: int, *, right: bool = False) -> str:
    space = " " * max(0, width - display_width(text))
    return space + text if right else text + space


def cut_to(text: str, width: int) -> str:
    if display_width(text) <= width:
        return text
    kept, used = [], 1
    for character in text:
        used += _character_width(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept) + "…"


def _plain(value: object) -> object:
    """What JSON has no form for: exact text."""
    if isinstance(value, datetime):
        return text_of(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return str(value)
