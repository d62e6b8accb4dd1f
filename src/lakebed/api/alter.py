"""Changes of a table's schema, collected and committed together."""

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, Self, TypeVar

from lakebed.model.changes import SetSchema
from lakebed.model.errors import InvalidSchema, NoChanges
from lakebed.model.history import TableState
from lakebed.model.ids import FieldId, SchemaId
from lakebed.model.names import check_column_name
from lakebed.model.schema import Schema, assign_ids, check_doc
from lakebed.model.schema_text import parse_type
from lakebed.model.types import Field, Type, is_type

R = TypeVar("R")


class Draft:
    """A schema while it is changed; `schemas` are all the table ever had."""

    def __init__(self, state: TableState, schemas: list[Schema]) -> None:
        self._fields = self._before = state.schema.fields
        self._primary_key = state.schema.primary_key
        self._last_column_id = state.last_column_id
        self._next_id = SchemaId(max(s.id for s in schemas) + 1)
        self._taken = frozenset(f.physical.casefold() for s in schemas for f in s.fields)

    def add_column(self, name: str, kind: Type, doc: str | None) -> None:
        check_column_name(name)
        if any(f.name.casefold() == name.casefold() for f in self._fields):
            raise InvalidSchema(
                f"there is a column {name!r} already",
                hint="names may not differ in case only; choose another",
                column=name,
            )
        added = Field(FieldId(0), name, kind, False, doc)
        taken = self._taken | {f.physical.casefold() for f in self._fields}
        placed, last = assign_ids((added,), last_column_id=self._last_column_id, taken=taken)
        self._fields, self._last_column_id = (*self._fields, *placed), last

    def set_comment(self, name: str, doc: str | None) -> None:
        if all(f.name != name for f in self._fields):
            raise InvalidSchema(
                f"there is no column {name!r}",
                hint=f"the columns are: {', '.join(f.name for f in self._fields)}",
                column=name,
            )
        self._fields = tuple(replace(f, doc=doc) if f.name == name else f for f in self._fields)
        check_doc(next(f for f in self._fields if f.name == name))

    def change(self) -> SetSchema:
        if self._fields == self._before:
            raise NoChanges("the alteration changes nothing", hint="add a column before committing")
        schema = Schema(self._next_id, self._fields, self._primary_key)
        return SetSchema(schema, self._last_column_id)


Step = Callable[[Draft], None]


def _checked(kind: Type) -> Type:
    if not is_type(kind):
        raise InvalidSchema(f"{kind!r} is not a type", hint="write it as text: 'decimal(10,2)'")
    return kind


class Alter(Generic[R]):
    """`table.alter().add_column("note", "string").commit()`; in a transaction commit() stages.

    Steps are tried at once, so that errors come early, and taken again on the schema that the
    commit finds: two alterations made at the same time both count.
    """

    def __init__(self, draft: Draft, commit: Callable[[list[Step], list[str]], R]) -> None:
        self._draft = draft
        self._commit = commit
        self._steps: list[Step] = []
        self._words: list[str] = []

    def add_column(self, name: str, kind: str | Type, *, doc: str | None = None) -> Self:
        """A new column at the end; rows written before read NULL there."""
        parsed = parse_type(kind) if isinstance(kind, str) else _checked(kind)
        words = f"add {name} {parsed} {doc}"
        return self._step(lambda draft: draft.add_column(name, parsed, doc), words)

    def set_comment(self, name: str, doc: str | None) -> Self:
        return self._step(lambda draft: draft.set_comment(name, doc), f"comment {name} {doc}")

    def commit(self) -> R:
        self._draft.change()
        return self._commit(self._steps, self._words)

    def _step(self, step: Step, words: str) -> Self:
        step(self._draft)
        self._steps.append(step)
        self._words.append(words)
        return self
