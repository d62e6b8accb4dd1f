"""A lake's tables in a DataFusion session, each at the version it had when the session began."""

from functools import partial
from typing import TYPE_CHECKING

from lakebed.api.parts import Parts
from lakebed.api.table import Table
from lakebed.engines import datafusion_session
from lakebed.engines.arrow.dataset import PlanDataset
from lakebed.model.history import TableHead

if TYPE_CHECKING:
    from datafusion import SessionContext

    from lakebed.engines.datafusion.session import MakeDataset


def session_of(parts: Parts) -> "SessionContext":
    """Tables are planned when a query first names them; one statement says all their versions."""
    namespaces: dict[str, dict[str, MakeDataset]] = {
        name: {} for name in parts.catalog.list_namespaces(None)
    }
    for head in parts.catalog.list_tables(None):
        tables = namespaces.setdefault(".".join(head.name.namespace), {})
        tables[head.name.name] = partial(_dataset, parts, head)
    return datafusion_session(namespaces)


def _dataset(parts: Parts, head: TableHead) -> PlanDataset:
    return Table(parts, head).scan(version=head.version).read_by(PlanDataset)
