"""What errors of Spark's tell of machines and memory that are gone."""

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from lakebed.engines.spark.losses import loss_in

ENDED = "Spark itself ended meanwhile"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        # How py4j tells that Java went away depends on what it was waiting for.
        (ConnectionRefusedError(111, "Connection refused"), ENDED),
        (Py4JNetworkError("Answer from Java side is empty"), ENDED),
        (Py4JError("An error occurred while calling o42.parquet"), ENDED),
        (RuntimeError("Job aborted: java.lang.OutOfMemoryError: Java heap"), "Spark ran out of"),
        (RuntimeError("Python worker exited unexpectedly (crashed)"), "a Python worker of Spark's"),
    ],
)
def test_what_was_lost_is_told(error: Exception, told: str) -> None:
    what, hint = loss_in(error) or ("", "")

    assert what.startswith(told)
    assert "partitions" in hint


@pytest.mark.parametrize(
    "error",
    [Py4JError("An error occurred while calling o1.x. Trace:\nno such method"), ValueError("no")],
)
def test_other_errors_are_no_loss(error: Exception) -> None:
    assert loss_in(error) is None
