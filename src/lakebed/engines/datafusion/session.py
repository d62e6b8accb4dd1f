"""A DataFusion session over tables that are planned when a query first names them."""

from collections.abc import Callable, Mapping

import pyarrow.dataset as ds
from datafusion import SessionContext
from datafusion.catalog import SchemaProvider, Table

# The table's rows, made when they are first asked for.
MakeDataset = Callable[[], ds.Dataset]


class Namespace(SchemaProvider):
    """A schema of the session; each table is made once, so that it stays as it was."""

    def __init__(self, tables: Mapping[str, MakeDataset]) -> None:
        self._tables = tables
        self._made: dict[str, Table] = {}

    @property
    def table_names(self) -> list[str]:  # type: ignore[override]  # read, not called, by 55.0
        return list(self._tables)

    def table(self, name: str) -> Table | None:
        if name not in self._made and name in self._tables:
            self._made[name] = Table(self._tables[name]())
        return self._made.get(name)

    def table_exist(self, name: str) -> bool:
        return name in self._tables


def new_session(namespaces: Mapping[str, Mapping[str, MakeDataset]]) -> SessionContext:
    session = SessionContext()
    for name, tables in namespaces.items():
        session.catalog().register_schema(name, Namespace(tables))
    return session
