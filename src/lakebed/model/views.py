"""A view: a query that the lake keeps under a name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebed.model.names import TableName


@dataclass(frozen=True, slots=True)
class View:
    """`namespace` is where names without one are looked for; `columns` are names with comments."""

    name: TableName
    sql: str
    namespace: tuple[str, ...] = ()
    columns: tuple[tuple[str, str | None], ...] = ()
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    version: int = 0
