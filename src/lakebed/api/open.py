"""Opens lakes: the one place where parts are chosen and wired. Heavy parts are imported late."""

import atexit
import logging
import os
import re
import uuid
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from lakebed.model.errors import (
    InvalidInput,
    InvalidUri,
    LakeExists,
    LakeNotFound,
    MissingExtra,
    StorageReadOnly,
    UnsupportedFeature,
    UpgradeRequired,
)

if TYPE_CHECKING:
    from lakebed.api.lake import Lake
    from lakebed.api.settings import Settings
    from lakebed.core.outbox import Outbox
    from lakebed.formats.lag import LagWatch
    from lakebed.formats.publish import Drainer
    from lakebed.meta.dialect import Dialect
    from lakebed.meta.migrate import Migration
    from lakebed.meta.store import Store
    from lakebed.model.ids import TableId
    from lakebed.rowops.change_files import ChangeFiles
    from lakebed.storage.base import Storage
    from lakebed.storage.cache.blocks import BlockCache

_log = logging.getLogger("lakebed")
DATABASE = "lakebed.db"
WAREHOUSE = "warehouse"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_open_lakes: "weakref.WeakSet[Lake]" = weakref.WeakSet()


class _Place(NamedTuple):
    """Where a lake's database is: a folder, a PostgreSQL URL, or memory (neither).

    `options` are what an object store needs to be opened; they may be secret.
    """

    uri: str
    folder: Path | None = None
    postgres: str | None = None
    options: Mapping[str, str] = MappingProxyType({})


def open(  # noqa: A001  # the name users type: lakebed.open
    uri: str | os.PathLike[str],
    *,
    create: bool = False,
    warehouse: str | os.PathLike[str] | None = None,
    settings: Mapping[str, object] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> "Lake":
    """Open a lake: a folder, `postgresql://…/db?schema=name`, or `:memory:`.

    `create` makes it when it is not there. `warehouse` is where tables live, a folder or
    `s3://bucket/prefix`; it is chosen when the lake is created and kept in it. `storage_options`
    are keys, endpoint and region of an object store, and never kept.
    """
    place = _place(_text(uri), storage_options or {})
    return _open(place, create=create, warehouse=warehouse, settings=settings or {})


def init(
    uri: str | os.PathLike[str],
    *,
    warehouse: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> "Lake":
    """Create a lake that must not exist yet."""
    # An empty file is what a crash while creating leaves behind: only the rows tell.
    place = _place(_text(uri), storage_options or {})
    return _open(place, create=True, warehouse=warehouse, settings={}, must_be_new=True)


def upgrade(uri: str | os.PathLike[str]) -> tuple[int, int]:
    """Bring a lake's database to this program's schema: (number before, number now)."""
    from lakebed.meta.migrate import known_migrations, schema_number

    place = _place(_text(uri))
    store = _store(place, {}, create=False)
    try:
        before = schema_number(store)
        if before == 0:
            raise _not_found(place)
        return before, _migrate(store, known_migrations())
    finally:
        store.close()


def find_lake(start: Path) -> Path | None:
    """The nearest folder at or above `start` that holds a lake."""
    for folder in (start, *start.parents):
        if (folder / DATABASE).is_file():
            return folder
    return None


def _text(uri: str | os.PathLike[str]) -> str:
    given: object = uri
    text = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(text, str):
        raise InvalidUri(f"{uri!r} is no place: it is not text", hint="lakebed.open('./shop')")
    try:
        os.fsencode(text)
    except ValueError:
        raise InvalidUri(
            f"{text!r} is no place: it is not valid Unicode", hint="lakebed.open('./shop')"
        ) from None
    return text


def _place(uri: str, options: Mapping[str, str] = MappingProxyType({})) -> _Place:
    if not isinstance(options, Mapping):
        raise InvalidInput(
            "storage options are a mapping", hint="storage_options={'region': 'eu-west-1'}"
        )
    return _database(uri)._replace(options=options)


def _database(uri: str) -> _Place:
    if not uri or "\x00" in uri:
        raise InvalidUri("a lake needs a folder or a URL", hint="lakebed.open('./shop')")
    if uri == ":memory:":
        return _Place(uri)
    if uri.startswith(("postgresql://", "postgres://")):
        return _Place(uri, postgres=uri)
    if uri.startswith("file://"):
        parts = urlsplit(uri)
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise InvalidUri(f"{uri!r} is not a local file URI", hint="write file:///folder")
        return _folder(unquote(parts.path))
    if (_SCHEME.match(uri) or uri.startswith(":")) and not _is_there(uri):
        raise InvalidUri(
            f"{uri.split(':', 1)[0] or uri!r} is no place for a lake's database",
            hint="use a folder, postgresql://…, or :memory:",
        )
    return _folder(uri)


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _folder(path: str) -> _Place:
    try:
        folder = Path(path).expanduser().absolute()
        folder.exists()  # a name can be too long
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidUri(
            f"{path[:100]!r} cannot be a folder: {error}", hint="choose another place"
        ) from error
    return _Place(str(folder), folder=folder.parent if folder.name == DATABASE else folder)


def _open(
    place: _Place,
    *,
    create: bool,
    warehouse: str | os.PathLike[str] | None,
    settings: Mapping[str, object],
    must_be_new: bool = False,
) -> "Lake":
    from lakebed.meta import lakes
    from lakebed.meta.migrate import apply_migrations, known_migrations

    create = create or place.uri == ":memory:"
    if not isinstance(settings, Mapping):
        raise InvalidInput("settings are a mapping", hint="settings={'publish.mode': 'background'}")
    if warehouse is not None:
        warehouse = _text(warehouse)
        _uri_of(place, warehouse)  # a bad URI is refused before anything is made
    if place.postgres is not None and warehouse is None:
        create = False  # without a warehouse nothing is made, only found
    store = _store(place, settings, create=create)
    try:
        _bring_up(place, store, create=create)
        with store.read() as tx:
            found = lakes.find_lake(tx)
        if found is None:
            if not create:
                raise _not_found(place)
            apply_migrations(store, known_migrations())
            found = _found(place, store, warehouse, must_be_new=must_be_new)
        elif must_be_new:
            raise _exists(place)
        elif warehouse is not None and _uri_of(place, os.fspath(warehouse)) != _uri_of(
            place, found[1]
        ):
            raise InvalidInput(
                f"this lake's warehouse is {_uri_of(place, found[1])}",
                hint="leave `warehouse` out; it is kept in the lake",
            )
        return _wire(place, store, found, settings)
    except BaseException:
        store.close()
        raise


def _store(place: _Place, settings: Mapping[str, object], *, create: bool) -> "Store":
    from lakebed.api.settings import Settings
    from lakebed.meta.store import Store

    resolved = Settings(settings, {})
    timeout_s = float(resolved.value("database.timeout-s"))
    dialect = _dialect(place, resolved, create=create)
    return Store(dialect, timeout_s=timeout_s)


def _dialect(place: _Place, resolved: "Settings", *, create: bool) -> "Dialect":
    timeout_s = float(resolved.value("database.timeout-s"))
    pool_size = int(resolved.value("database.pool-size"))
    if place.postgres is not None:
        try:
            from lakebed.meta.postgres import PostgresDialect
        except ImportError as error:
            raise MissingExtra(
                "the PostgreSQL driver is not installed", hint="pip install 'lakebed[postgres]'"
            ) from error
        postgres = PostgresDialect(place.postgres, timeout_s=timeout_s, pool_size=pool_size)
        if create:
            postgres.create_schema()
        return postgres
    from lakebed.core.crash import crash_point
    from lakebed.meta.sqlite import SqliteDialect

    path = place.folder / DATABASE if place.folder is not None else None
    if path is not None and not path.exists():
        if not create:
            raise _not_found(place)
        _make_file(path)
        crash_point("open_after_file")
    return SqliteDialect(path, timeout_s=timeout_s, pool_size=pool_size)


def _make_file(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except (NotADirectoryError, FileExistsError) as error:
        raise InvalidUri(f"{path.parent} is not a folder", hint="choose another place") from error
    except OSError as error:
        raise StorageReadOnly(
            f"{path.parent} cannot be written: {error.strerror}", hint="check its permissions"
        ) from error


def _bring_up(place: _Place, store: "Store", *, create: bool) -> None:
    """Migrate an older SQLite database, keeping a copy; refuse an older PostgreSQL one."""
    from lakebed.core.crash import crash_point
    from lakebed.meta.migrate import apply_migrations, known_migrations, refuse_newer, schema_number
    from lakebed.meta.sqlite import SqliteDialect

    number, known = schema_number(store), known_migrations()
    refuse_newer(number, known)
    if number == 0:
        if not create:
            raise _not_found(place)
        apply_migrations(store, known)
        crash_point("open_after_migrations")
    elif number < known[-1].number:
        if not isinstance(store.dialect, SqliteDialect):
            raise UpgradeRequired(
                f"the database has schema {number}, this lakebed needs {known[-1].number}",
                hint="run `lakebed upgrade` once, when no older lakebed uses the lake",
            )
        _migrate(store, known)


def _migrate(store: "Store", known: "Sequence[Migration]") -> int:
    """Apply what is missing; a copy of a database file is kept by whoever comes first."""
    from lakebed.core.crash import crash_point
    from lakebed.meta.migrate import apply_migrations, schema_number
    from lakebed.meta.sqlite import SqliteDialect

    if not isinstance(store.dialect, SqliteDialect):
        return apply_migrations(store, known)
    with store.exclusive("upgrade"):
        if schema_number(store) < known[-1].number:
            copy = store.dialect.keep_copy(f"before-{known[-1].number:04d}")
            crash_point("upgrade_after_copy")
            _log.warning("upgrading the lake's database; the old one is kept as %s", copy)
        return apply_migrations(store, known)


def _found(
    place: _Place,
    store: "Store",
    warehouse: str | os.PathLike[str] | None,
    *,
    must_be_new: bool,
) -> tuple[str, str]:
    """Write the lake's own row, unless another process was faster."""
    from lakebed.core.crash import crash_point
    from lakebed.meta import lakes
    from lakebed.storage.open import is_object_store, open_storage

    if warehouse is not None:
        chosen = _uri_of(place, os.fspath(warehouse))
    elif place.folder is not None:
        chosen = WAREHOUSE  # relative: the folder may be moved
    else:
        chosen = "memory://"
    storage = open_storage(_uri_of(place, chosen), place.options)  # refused before anything is kept
    if is_object_store(storage.root_uri):
        _try_races(storage, shared=place.postgres is not None)
    with store.write() as tx:
        ours = lakes.insert_lake(tx, uuid=str(uuid.uuid4()), warehouse=chosen)
        found = lakes.find_lake(tx)
    if must_be_new and not ours:
        raise _exists(place)
    assert found is not None
    crash_point("open_after_row")
    return found


def _try_races(storage: "Storage", *, shared: bool) -> None:
    """Writers on several hosts need a store that decides races; on one host the database does."""
    from lakebed.storage.probe import decides_races

    if decides_races(storage):
        return
    if shared:
        raise UnsupportedFeature(
            f"{storage.root_uri} lets two writers put the same object",
            hint="use a store with conditional put (If-None-Match), or a lake in a folder",
        )
    _log.warning(
        "%s lets two writers put the same object: write to this lake from one host only",
        storage.root_uri,
    )


def _uri_of(place: _Place, warehouse: str) -> str:
    from lakebed.storage.open import root_uri_of

    if warehouse == WAREHOUSE and place.folder is not None:
        warehouse = str(place.folder / WAREHOUSE)
    return warehouse if warehouse == "memory://" else root_uri_of(warehouse)


def _wire(
    place: _Place, store: "Store", found: tuple[str, str], given: Mapping[str, object]
) -> "Lake":
    from lakebed.api.lake import Lake
    from lakebed.api.parts import Parts
    from lakebed.api.settings import Settings
    from lakebed.core.catalog import Catalog
    from lakebed.core.commit import Committer
    from lakebed.core.extremes import Extremes
    from lakebed.core.holding import Holding
    from lakebed.core.index import FileIndex
    from lakebed.core.lease import Leases
    from lakebed.core.outbox import Outbox
    from lakebed.core.refs import Refs
    from lakebed.core.runs import Runs
    from lakebed.core.scan import Planner
    from lakebed.core.upkeep import Upkeep
    from lakebed.core.views import Views
    from lakebed.engines.duckdb.pool import Pool
    from lakebed.formats.lag import LagWatch
    from lakebed.formats.worker import Worker
    from lakebed.security.policy import OWNER

    catalog = Catalog(store)
    settings = Settings(given, catalog.settings())
    settings.all()  # a bad value is told now, not after a commit
    storage, cache = _storage(place, found[1], settings)
    outbox = Outbox(store)
    drainer = _drainer(outbox, storage, settings)
    lag = LagWatch(outbox, lambda: float(settings.value("publish.lag-warn-s")))
    worker = Worker("publish", partial(_publish_behind, drainer, lag))
    index, extremes = FileIndex(store), Extremes(store)
    leases = Leases(store, lambda: float(settings.value("lease.ttl-s")))
    lake = Lake(
        Parts(
            uri=_shown(place),
            uuid=found[0],
            storage=storage,
            cache=cache,
            catalog=catalog,
            planner=Planner(store, index),
            extremes=extremes,
            refs=Refs(store),
            views=Views(store),
            runs=Runs(store),
            committer=Committer(store, retries=int(settings.value("commit.retries"))),
            outbox=outbox,
            drainer=drainer,
            worker=worker,
            lag=lag,
            upkeep=Worker("upkeep", Upkeep(index, extremes).run),
            leases=leases,
            holding=Holding(leases),
            engines=Pool(),
            close=store.close,
            settings=settings,
            principal=OWNER,
        )
    )
    if settings.value("publish.mode") != "service":
        for row in outbox.all_pending()[0]:
            worker.notify(row.table_id)  # what a process before us left behind
    _open_lakes.add(lake)
    return lake


def _drainer(outbox: "Outbox", storage: "Storage", settings: "Settings") -> "Drainer":
    from lakebed.formats.base import Publisher
    from lakebed.formats.delta.publish import DeltaPublisher
    from lakebed.formats.iceberg.publish import IcebergPublisher
    from lakebed.formats.publish import Drainer

    delta = DeltaPublisher(storage, settings.value, _change_files(storage, settings))
    iceberg = IcebergPublisher(storage, settings.value)
    publishers: dict[str, Publisher] = {delta.format: delta, iceberg.format: iceberg}
    return Drainer(outbox, storage, publishers, settings.value)


def _publish_behind(drainer: "Drainer", lag: "LagWatch", table_id: "TableId") -> None:
    drainer.drain(table_id)
    lag.look()


def _storage(
    place: _Place, warehouse: str, settings: "Settings"
) -> "tuple[Storage, BlockCache | None]":
    from lakebed.storage.open import open_storage

    uri = _uri_of(place, warehouse)
    cache = _cache(uri, settings)
    return open_storage(uri, place.options, cache=cache), cache


def _cache(warehouse: str, settings: "Settings") -> "BlockCache | None":
    from lakebed.storage.cache.blocks import BlockCache
    from lakebed.storage.cache.place import user_cache
    from lakebed.storage.open import is_object_store

    limit_bytes = int(settings.value("cache.size"))
    if limit_bytes == 0 or not is_object_store(warehouse):
        return None
    named = str(settings.value("cache.dir"))
    try:
        folder = Path(named).expanduser().absolute() if named else user_cache("objects")
    except RuntimeError as error:  # there is no home
        _log.warning("nothing is cached: %s; cache.dir names a folder", error)
        return None
    return BlockCache(str(folder), limit_bytes)


def _change_files(storage: "Storage", settings: "Settings") -> "ChangeFiles":
    from lakebed.api.engine import engine_of
    from lakebed.api.writing import write_options
    from lakebed.rowops.change_files import ChangeFiles
    from lakebed.rowops.workbench import Workbench

    return ChangeFiles(
        storage,
        lambda: Workbench(partial(engine_of, storage, settings)),
        partial(write_options, settings),
    )


def _shown(place: _Place) -> str:
    if place.postgres is None:
        return place.uri
    from lakebed.meta.postgres import redact

    return redact(place.postgres)


def _exists(place: _Place) -> LakeExists:
    return LakeExists(f"there is a lake in {_shown(place)} already", hint="open it instead")


def _not_found(place: _Place) -> LakeNotFound:
    shown = _shown(place)
    where = " --warehouse FOLDER" if place.postgres is not None else ""
    argument = ", warehouse='folder'" if place.postgres is not None else ""
    return LakeNotFound(
        f"there is no lake in {shown}",
        hint=f"create it with: lakebed init {shown}{where}"
        f"   (Python: lakebed.open(…, create=True{argument}))",
    )


@atexit.register
def _close_all() -> None:
    for lake in list(_open_lakes):
        lake.close()
