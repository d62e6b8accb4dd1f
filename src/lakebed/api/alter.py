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
        self._uses = _uses(state)

    def add_column(self, name: str, kind: Type, doc: str | None) -> None:
        check_column_name(name)
        _refuse_twice((*self._fields, Field(FieldId(0), name, kind)), name)
        added = Field(FieldId(0), name, kind, False, doc)
        taken = self._taken | {f.physical.casefold() for f in self._fields}
        placed, last = assign_ids((added,), last_column_id=self._last_column_id, taken=taken)
        self._fields, self._last_column_id = (*self._fields, *placed), last

    def rename_column(self, name: str, new_name: str) -> None:
        """Files keep their column: it is found by its physical name, which stays."""
        column = self._find(name)
        check_column_name(new_name)
        self._replace(column, replace(column, name=new_name))
        _refuse_twice(self._fields, new_name)

    def drop_column(self, name: str) -> None:
        column = self._find(name)
        use = self._uses.get(column.id)
        if use is not None:
            raise InvalidSchema(
                f"column {name!r} is {use}", hint="only other columns can be dropped", column=name
            )
        if len(self._fields) == 1:
            raise InvalidSchema(
                f"{name!r} is the only column", hint="drop the table instead", column=name
            )
        self._fields = tuple(f for f in self._fields if f.id != column.id)

    def set_comment(self, name: str, doc: str | None) -> None:
        column = self._find(name)
        self._replace(column, replace(column, doc=doc))
        check_doc(self._find(name))

    def _find(self, name: str) -> Field:
        for field in self._fields:
            if field.name == name:
                return field
        raise InvalidSchema(
            f"there is no column {name!r}",
            hint=f"the columns are: {', '.join(f.name for f in self._fields)}",
            column=name,
        )

    def _replace(self, old: Field, new: Field) -> None:
        self._fields = tuple(new if f.id == old.id else f for f in self._fields)

    def change(self) -> SetSchema:
        if self._fields == self._before:
            raise NoChanges("the alteration changes nothing", hint="add a column before committing")
        schema = Schema(self._next_id, self._fields, self._primary_key)
        return SetSchema(schema, self._last_column_id)


def _uses(state: TableState) -> dict[FieldId, str]:
    """Columns that the table is built on, and how."""
    uses = {f.source_id: "in the sort order" for f in state.sort_order.fields}
    uses |= dict.fromkeys(state.schema.primary_key, "in the primary key")
    uses |= {f.source_id: "partitioned by" for f in state.spec.fields}
    tops = {f.id: state.schema.path_of(f.id)[0].id for f in state.schema.walk()}
    return {tops[field_id]: use for field_id, use in uses.items()}


def _refuse_twice(fields: tuple[Field, ...], name: str) -> None:
    if sum(f.name.casefold() == name.casefold() for f in fields) > 1:
        raise InvalidSchema(
            f"there is a column {name!r} already",
            hint="names may not differ in case only; choose another",
            column=name,
        )


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

    def rename_column(self, name: str, new_name: str) -> Self:
        """Another name for the same column, in old rows too; no data is rewritten."""
        words = f"rename {name} {new_name}"
        return self._step(lambda draft: draft.rename_column(name, new_name), words)

    def drop_column(self, name: str) -> Self:
        """The column is no longer shown; older versions still have it."""
        return self._step(lambda draft: draft.drop_column(name), f"drop {name}")

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
