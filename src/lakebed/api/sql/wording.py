"""Errors of the engine in the user's words: names and places of the text that was given."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lakebed.api.sql.bound import Bound
from lakebed.core.plan import Plan
from lakebed.model.errors import ConversionFailed, LakebedError, SqlColumnUnknown
from lakebed.model.nearest import nearest
from lakebed.sql.fragments import PLACEHOLDER
from lakebed.sql.places import name_offset, offset_of, text_offset, unplaced
from lakebed.sql.query import Expression, Reference, Select, Span, readable
from lakebed.sql.source import Source


@dataclass(frozen=True, slots=True)
class Wording:
    """The script and which of its statements is meant; 0 when there is only one."""

    script: str = ""
    statement: int = 0

    @contextmanager
    def of_query(
        self, piece: Select | Expression, relations: Sequence[Bound] = ()
    ) -> Iterator[None]:
        """The engine runs the text of the piece as it is."""
        try:
            yield
        except LakebedError as error:
            if not _is_ours(error):
                raise
            source = self._source()
            line, column = error.context.get("line"), error.context.get("character")
            offset = None
            if isinstance(line, int) and isinstance(column, int):
                offset = offset_of(source, piece, line, column)
            tables = [r.reference for r in relations]
            raise _reworded(error, source, offset, tables, _near(error, relations)) from error

    @contextmanager
    def of_statement(self, span: Span, tables: Sequence[Reference] = ()) -> Iterator[None]:
        """The engine runs SQL of ours around pieces of the statement: its places say nothing."""
        try:
            yield
        except LakebedError as error:
            if not _is_ours(error):
                raise
            source = self._source()
            name = error.context.get("column")
            offset = name_offset(source, span, name) if isinstance(name, str) else None
            if isinstance(error, ConversionFailed):
                offset = text_offset(source, span, error.message)
            offset = span.start if offset is None else offset
            raise _reworded(error, source, offset, tables, "") from error

    def _source(self) -> Source:
        source = Source(self.script)
        source.statement = self.statement
        return source


def readable_name(name: str, tables: Sequence[Reference]) -> str:
    return readable(name, tuple(tables)) if PLACEHOLDER in name else name


def _is_ours(error: LakebedError) -> bool:
    """Is it about the text that the engine ran, and not reworded yet?"""
    if type(error.__cause__) is type(error):
        return False
    placed = unplaced(error.message) != error.message
    return placed or PLACEHOLDER in error.message or isinstance(error, SqlColumnUnknown)


def _reworded(
    error: LakebedError, source: Source, offset: int | None, tables: Sequence[Reference], near: str
) -> LakebedError:
    message = readable_name(unplaced(error.message), tables)
    hint = near or readable_name(error.hint, tables)
    context = {k: v for k, v in error.context.items() if k not in ("line", "character")}
    if offset is not None:
        line, column = source.place(offset)
        context |= {"line": line, "character": column}
        message = source.shown(offset, message)
    return type(error)(message, hint=hint, **context)


def _near(error: LakebedError, relations: Sequence[Bound]) -> str:
    """Of all columns that the relations have, also those that were not asked for."""
    if not isinstance(error, SqlColumnUnknown):
        return ""
    name = str(error.context.get("column", ""))
    known = [f.name for r in relations if isinstance(r.rows, Plan) for f in r.rows.schema.fields]
    close = nearest(name, known, most=3, cutoff=0.5)
    return f"did you mean {', '.join(close)}?" if close else ""
