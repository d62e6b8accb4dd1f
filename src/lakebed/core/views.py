"""Views by name: create, replace, list, drop. A view and a table never share a name."""

from lakebed.meta import namespaces, tables, views
from lakebed.meta.store import Store
from lakebed.model.errors import NamespaceNotFound, TableExists, ViewNotFound
from lakebed.model.names import TableName
from lakebed.model.nearest import nearest
from lakebed.model.views import View


class Views:
    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, name: TableName) -> View | None:
        with self._store.read() as tx:
            return views.find_view(tx, name)

    def list(self, levels: tuple[str, ...] | None) -> list[View]:
        with self._store.read() as tx:
            return views.list_views(tx, None if levels is None else ".".join(levels))

    def create(self, view: View, *, replace: bool = False) -> None:
        namespace = ".".join(view.name.namespace)
        with self._store.write() as tx:
            namespace_id = namespaces.lock_namespace(tx, namespace)
            if namespace_id is None:
                raise NamespaceNotFound(
                    f"there is no namespace {namespace}",
                    hint=f"create it first: CREATE SCHEMA {namespace}",
                    namespace=namespace,
                )
            if tables.find_table(tx, view.name) is not None:
                raise TableExists(f"there is a table {view.name}", hint="choose another name")
            if not replace and views.find_view(tx, view.name) is not None:
                raise TableExists(
                    f"view {view.name} exists already", hint="use CREATE OR REPLACE VIEW"
                )
            views.put_view(tx, namespace_id, view)

    def drop(self, name: TableName) -> None:
        with self._store.write() as tx:
            if views.delete_view(tx, name):
                return
            known = [str(v.name) for v in views.list_views(tx, ".".join(name.namespace))]
        close = nearest(str(name), known)
        hint = f"did you mean {close[0]}?" if close else "SHOW VIEWS lists them"
        raise ViewNotFound(f"there is no view {name}", hint=hint, view=str(name))
