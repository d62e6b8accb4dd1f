"""Executors that were lost, and memory that was not enough, as Spark's errors tell of them."""

import re

from py4j.protocol import Py4JError, Py4JNetworkError

_KEPT = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
_MEMORY = (
    "OutOfMemoryError",
    "Java heap space",
    "exited with code 52",  # what an executor ends with then
    "exceeding physical memory limits",
    "OOMKilled",
)
_MORE_MEMORY = (
    "give it more (locally memory=, on a cluster spark.executor.memory), or make more and smaller"
    " partitions"
)
_MORE_ROOM = (
    "if the system killed it for its memory, give more room beside Java's"
    " (spark.executor.memoryOverhead), or make smaller partitions"
)
_LOST = re.compile(r"ExecutorLostFailure \(([^\n]*)")
_UNANSWERED = re.compile(r"An error occurred while calling \S+")  # what Java says comes behind it
_CRASHED = "Python worker exited unexpectedly"
_ENDED = ("SparkContext was shut down", "stopped SparkContext")


def text_of(error: BaseException) -> str:
    """What an error of Spark's says; it asks Java for that, which may be gone."""
    try:
        return str(error)
    except (Py4JError, ConnectionError):
        return _ENDED[0]


def has_lost_rows(text: str) -> bool:
    """Are rows gone that executors kept for one change?"""
    return _KEPT in text


def loss_in(error: BaseException) -> tuple[str, str] | None:
    """(what happened, what to do) when it was executors or Spark, not the work, that failed."""
    text = text_of(error)
    if any(said in text for said in _MEMORY):
        return "Spark ran out of memory", _MORE_MEMORY
    if _CRASHED in text:
        return "a Python worker of Spark's was killed or crashed", _MORE_ROOM
    lost = _LOST.search(text)
    if lost is not None:
        return (
            f"Spark gave up because executors were lost: {lost[1][:200].replace(') Reason:', ',')}",
            "the executors' own logs say more; then run again",
        )
    # Python's own error: Java is gone. What a function meets in its worker comes as another one.
    gone = isinstance(error, ConnectionError | Py4JNetworkError) or (
        isinstance(error, Py4JError) and _UNANSWERED.fullmatch(text) is not None
    )
    if gone or any(said in text for said in _ENDED):
        return "Spark itself ended meanwhile, as it does when its memory runs out", _MORE_MEMORY
    return None
