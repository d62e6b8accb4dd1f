"""What statements need of the lake they run on; `Lake` is one."""

from collections.abc import Mapping, Sequence
from typing import Protocol, Unpack

from lakebed.api.options import CommitOptions
from lakebed.api.status import Status
from lakebed.api.table import Table
from lakebed.api.transaction import Transaction
from lakebed.model.views import View


class Host(Protocol):
    def table(self, name: str) -> Table: ...

    def tables(self, namespace: str | None = None) -> list[str]: ...

    def has_table(self, name: str) -> bool: ...

    def create_table(
        self,
        name: str,
        schema: object,
        *,
        partition_by: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        primary_key: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        formats: str | Sequence[str] | None = None,
        comment: str | None = None,
        constraints: Mapping[str, str] | None = None,
        **options: Unpack[CommitOptions],
    ) -> Table: ...

    def drop_table(self, name: str, *, purge: bool = False) -> None: ...

    def dropped_tables(self) -> list[tuple[str, str]]: ...

    def purge_table(self, name: str) -> int: ...

    def rename_table(self, name: str, new_name: str) -> None: ...

    def namespaces(self, parent: str | None = None) -> list[str]: ...

    def namespace_properties(self, name: str) -> dict[str, str]: ...

    def set_namespace_properties(
        self, name: str, changed: Mapping[str, str] | None = None, *, removed: Sequence[str] = ()
    ) -> dict[str, str]: ...

    def create_namespace(
        self, name: str, properties: Mapping[str, str] | None = None, *, exist_ok: bool = False
    ) -> None: ...

    def drop_namespace(self, name: str) -> None: ...

    def views(self, namespace: str | None = None) -> list[View]: ...

    def create_view(self, view: View, *, replace: bool = False) -> None: ...

    def drop_view(self, name: str) -> None: ...

    def transaction(self, **options: Unpack[CommitOptions]) -> Transaction: ...

    def publish(self, table: str | None = None) -> Status: ...
