"""Changes of a table's shape, collected and committed together."""

from collections.abc import Callable, Sequence
from typing import Generic, Self, TypeVar

from lakebed.api.draft import Draft
from lakebed.api.options import check_names
from lakebed.model.errors import InvalidSchema
from lakebed.model.evolution import Path, Place, parse_path
from lakebed.model.ids import FieldId
from lakebed.model.schema_text import parse_type
from lakebed.model.types import Field, Type, is_type

R = TypeVar("R")
Step = Callable[[Draft], None]


def _type(kind: str | Type) -> Type:
    if isinstance(kind, str):
        return parse_type(kind)
    if not is_type(kind):
        raise InvalidSchema(f"{kind!r} is not a type", hint="write it as text: 'decimal(10,2)'")
    return kind


class Alter(Generic[R]):
    """`table.alter().add_column("note", "string").commit()`; in a transaction commit() stages.

    A column is named by its path: `address.city`, `items.element.price`, `tags.value.x`, or a tuple
    of the parts. Steps are tried at once, so that errors come early, and taken again on the table
    that the commit finds: two alterations made at the same time both count. No data is rewritten.
    """

    def __init__(self, draft: Draft, commit: Callable[[list[Step], list[str]], R]) -> None:
        self._draft = draft
        self._commit = commit
        self._steps: list[Step] = []
        self._words: list[str] = []

    def add_column(
        self,
        name: Path,
        kind: str | Type,
        *,
        doc: str | None = None,
        default: object = None,
        first: bool = False,
        after: str | None = None,
    ) -> Self:
        """A new column, at the end of its level unless told otherwise.

        Rows written before read NULL there, or the default.
        """
        path, place = parse_path(name), Place(first, after)
        added = Field(FieldId(0), path[-1], _type(kind), False, doc)
        return self._step(
            lambda draft: draft.add_column(path, added, default, place),
            f"add {path} {added.type} {doc} {default!r} {place}",
        )

    def rename_column(self, name: Path, new_name: str) -> Self:
        """Another name for the same column, in old rows too."""
        path = parse_path(name)
        return self._step(
            lambda draft: draft.rename_column(path, new_name), f"rename {path} {new_name}"
        )

    def drop_column(self, name: Path) -> Self:
        """The column is no longer shown; older versions still have it."""
        path = parse_path(name)
        return self._step(lambda draft: draft.drop_column(path), f"drop {path}")

    def move_column(
        self,
        name: Path,
        *,
        first: bool = False,
        after: str | None = None,
        before: str | None = None,
    ) -> Self:
        """Another place among the columns of its level; by default the last."""
        path, place = parse_path(name), Place(first, after, before)
        return self._step(lambda draft: draft.move_column(path, place), f"move {path} {place}")

    def widen_column(self, name: Path, kind: str | Type) -> Self:
        """A type that holds every value there is: int to long, float to double, more digits."""
        path, wider = parse_path(name), _type(kind)
        return self._step(lambda draft: draft.widen_column(path, wider), f"widen {path} {wider}")

    def make_optional(self, name: Path) -> Self:
        """Rows may have NULL there from now on."""
        path = parse_path(name)
        return self._step(lambda draft: draft.make_optional(path), f"optional {path}")

    def set_default(self, name: Path, value: object) -> Self:
        """What rows get that are written from now on and leave the column out."""
        path = parse_path(name)
        return self._step(lambda draft: draft.set_default(path, value), f"default {path} {value!r}")

    def drop_default(self, name: Path) -> Self:
        path = parse_path(name)
        return self._step(lambda draft: draft.drop_default(path), f"no default {path}")

    def set_comment(self, name: Path, doc: str | None) -> Self:
        path = parse_path(name)
        return self._step(lambda draft: draft.set_comment(path, doc), f"comment {path} {doc}")

    def set_primary_key(self, columns: Sequence[str]) -> Self:
        """The columns that name a row, all NOT NULL; none: no key."""
        names = check_names("columns", columns)
        return self._step(lambda draft: draft.set_primary_key(names), f"key {names}")

    def set_partitioning(self, terms: Sequence[str]) -> Self:
        """How new files are partitioned, as in create_table; none: not at all."""
        texts = check_names("terms", terms)
        return self._step(lambda draft: draft.set_partitioning(texts), f"partition {texts}")

    def add_partition_field(self, term: str) -> Self:
        """One more term of the partitioning: new files are partitioned by it too."""
        return self._step(lambda draft: draft.add_partition_field(term), f"partition + {term}")

    def drop_partition_field(self, term: str) -> Self:
        """One term less, by its text or by the name of its field."""
        return self._step(lambda draft: draft.drop_partition_field(term), f"partition - {term}")

    def set_table_comment(self, comment: str | None) -> Self:
        """What the table is, for people; None takes it away."""
        return self._step(lambda draft: draft.set_table_comment(comment), f"table {comment}")

    def replace_columns(self, fields: tuple[Field, ...]) -> Self:
        """Other columns for a table that the same transaction empties."""
        return self._step(lambda draft: draft.replace_columns(fields), f"columns {fields}")

    def set_sort_order(self, terms: Sequence[str]) -> Self:
        """How new files are sorted, as in create_table; none: not at all."""
        texts = check_names("terms", terms)
        return self._step(lambda draft: draft.set_sort_order(texts), f"sort {texts}")

    def add_constraint(self, name: str, condition: str) -> Self:
        """A condition that no row may make FALSE; the rows there are must pass it."""
        return self._step(
            lambda draft: draft.add_constraint(name, condition), f"check {name} {condition}"
        )

    def drop_constraint(self, name: str, *, if_exists: bool = False) -> Self:
        return self._step(
            lambda draft: draft.drop_constraint(name, if_exists=if_exists), f"no check {name}"
        )

    @property
    def has_steps(self) -> bool:
        return bool(self._steps)

    def commit(self) -> R:
        self._draft.changes()
        return self._commit(self._steps, self._words)

    def _step(self, step: Step, words: str) -> Self:
        step(self._draft)
        self._steps.append(step)
        self._words.append(words)
        return self
