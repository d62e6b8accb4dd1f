"""The parts of an open lake, wired once in `open` and shared by its handles."""

from collections.abc import Callable
from dataclasses import dataclass

from lakebed.api.settings import Settings
from lakebed.core.catalog import Catalog
from lakebed.core.commit import Committer
from lakebed.core.extremes import Extremes
from lakebed.core.holding import Holding
from lakebed.core.lease import Leases
from lakebed.core.outbox import Outbox
from lakebed.core.refs import Refs
from lakebed.core.runs import Runs
from lakebed.core.scan import Planner
from lakebed.core.views import Views
from lakebed.engines.duckdb.pool import Pool
from lakebed.formats.lag import LagWatch
from lakebed.formats.publish import Drainer
from lakebed.formats.worker import Worker
from lakebed.security.policy import Principal
from lakebed.storage.base import Storage
from lakebed.storage.cache.blocks import BlockCache


@dataclass(frozen=True, slots=True)
class Parts:
    uri: str
    uuid: str
    storage: Storage
    cache: BlockCache | None  # of what the storage reads
    catalog: Catalog
    planner: Planner
    extremes: Extremes
    refs: Refs
    views: Views
    runs: Runs
    committer: Committer
    outbox: Outbox
    drainer: Drainer
    worker: Worker  # publishes in the background
    lag: LagWatch
    upkeep: Worker  # brings up to date what is made from rows
    leases: Leases
    holding: Holding
    engines: Pool
    close: Callable[[], None]  # gives the database connections back
    settings: Settings
    principal: Principal
