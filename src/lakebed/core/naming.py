"""Where a table's root is; how names become rows: namespaces as needed, locations unique."""

from urllib.parse import quote

from lakebed.meta import namespaces, tables, views
from lakebed.meta.store import Tx
from lakebed.model.changes import CreateTable
from lakebed.model.errors import CommitConflict, InvalidName, NamespaceNotFound, TableExists
from lakebed.model.history import TableHead
from lakebed.model.ids import StateId, Version
from lakebed.model.names import TableName

_MAX_LENGTH = 700  # files of the table come below it, and object stores end at 1024


def folder_of(name: TableName) -> str:
    """The plain root of a table: awkward characters percent-encoded, one folder per level."""
    folder = "/".join(_folder(part) for part in (*name.namespace, name.name))
    if len(folder) > _MAX_LENGTH:
        raise InvalidName(
            f"the folder of table {str(name)[:100]}… would have {len(folder)} characters",
            hint=f"use fewer or shorter names: at most {_MAX_LENGTH} characters together",
        )
    return folder


def _folder(part: str) -> str:
    encoded = quote(part, safe="")
    # Readers skip folders that begin with "_" or ".", and encoding can outgrow a file name.
    if encoded[0] in "._":
        encoded = f"%{ord(encoded[0]):02X}{encoded[1:]}"
    return encoded if len(encoded) <= 200 else f"{encoded[:180]}~{len(encoded)}"


def free_locations(tx: Tx, name: TableName, uuid: str) -> list[str]:
    """Roots no table of the lake has: the plain one, then suffixed at a level, deepest first."""
    plain = folder_of(name)
    levels = plain.split("/")
    wanted = [plain]
    for depth in reversed(range(len(levels))):
        marked = [*levels[:depth], f"{levels[depth]}-{uuid[:8]}", *levels[depth + 1 :]]
        wanted.append("/".join(marked))
    return [location for location in wanted if not tables.location_taken(tx, location)]


def ensure_namespace(tx: Tx, levels: tuple[str, ...]) -> int:
    """The id of a namespace, made with its parents when missing."""
    namespace_id = None
    for depth in range(1, len(levels) + 1):
        name = ".".join(levels[:depth])
        namespaces.insert_namespace(tx, name, {})
        # Every level is locked: a table made at the same time in a namespace above or below
        # must not choose a folder around or inside this one's.
        namespace_id = namespaces.lock_namespace(tx, name)
    if namespace_id is None:
        raise NamespaceNotFound(f"namespace {'.'.join(levels)} was dropped", hint="try again")
    return namespace_id


def refuse_view(tx: Tx, name: TableName) -> None:
    if views.find_view(tx, name) is not None:
        raise TableExists(f"there is a view {name}", hint="choose another name", table=str(name))


def place_table(tx: Tx, create: CreateTable) -> TableHead:
    """The row of a new table, before its first version."""
    namespace_id = ensure_namespace(tx, create.name.namespace)
    if tables.find_table(tx, create.name) is not None:
        raise TableExists(
            f"table {create.name} exists already",
            hint="choose another name, or open it with lake.table()",
            table=str(create.name),
        )
    refuse_view(tx, create.name)
    if tables.location_taken(tx, create.location):
        raise CommitConflict(
            f"the folder {create.location} was taken by another table meanwhile",
            hint="create the table again",
            table=str(create.name),
        )
    table_id = tables.insert_table(
        tx,
        namespace_id=namespace_id,
        name=create.name.name,
        uuid=create.uuid,
        location=create.location,
    )
    head = tables.get_table(tx, table_id)
    assert head is not None and head.version == Version(-1) and head.state_id == StateId(-1)
    return head
