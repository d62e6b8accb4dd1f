"""Is what a DataFrame reads still of use to anybody? Spark's own memory tells."""

from collections.abc import Callable

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

from lakebed.engines.spark.session import is_connect

# What all frames made of one share, however they are changed, cached or joined.
_SHARED = {"LogicalRelation": "relation", "DataSourceV2Relation": "table"}


def in_use(frame: DataFrame) -> Callable[[], bool] | None:
    """Does the frame, or one that was made of it, still live? None: this cannot be told.

    A client of Spark Connect cannot look.
    """
    session = frame.sparkSession
    if is_connect(session):
        return None
    weakly = session._jvm.java.lang.ref.WeakReference  # type: ignore[union-attr]  # noqa: SLF001 - no other way
    shared = [weakly(each) for each in _shared(frame)]

    def is_used() -> bool:
        try:
            return not all(each.refersTo(None) for each in shared)
        except (Py4JError, OSError):
            return False  # the session is over

    return is_used


def _shared(frame: DataFrame) -> list[JavaObject]:
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001 - as above
    found = []
    for number in range(leaves.size()):
        leaf = leaves.apply(number)
        name = _SHARED.get(leaf.getClass().getSimpleName())
        if name is not None:
            found.append(getattr(leaf, name)())
    return found
