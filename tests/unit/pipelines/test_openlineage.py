"""OpenLineage events: sent where the variable says, and never a reason to fail."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from lakebed.model.runs import Derivation, Run, RunAttachment, RunReport
from lakebed.pipelines.openlineage import VARIABLE, LineageEvents, LineageWarning
from tests.lineage_receiver import receiver

BEGAN = Run("0123456789ab", "shop", "running", 1_000, None, "ada", RunReport())
ENDED = Run(
    "0123456789ab", "shop", "succeeded", 1_000, 2_000, "ada", RunReport(written={"b.out": 3})
)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    with receiver() as (url, found):
        monkeypatch.setenv(VARIABLE, url)
        yield found


def test_a_run_is_told_with_what_it_read_and_wrote(taken: list[dict[str, Any]]) -> None:
    events = LineageEvents("shop", BEGAN)
    derived = (Derivation("b.out", "a.in"), Derivation("c.out", "b.out"))

    events.started()
    events.completed(ENDED, RunAttachment(BEGAN.id, "shop", ENDED.report, derivations=derived))

    start, complete = taken
    assert [event["eventType"] for event in taken] == ["START", "COMPLETE"]
    assert start["job"] == {"namespace": "lakebed", "name": "shop"}
    assert start["run"] == complete["run"]
    assert UUID(start["run"]["runId"]).hex.endswith(BEGAN.id)
    assert complete["inputs"] == [{"namespace": "lakebed", "name": "a.in"}]
    assert complete["outputs"] == [{"namespace": "lakebed", "name": "b.out"}]
    assert complete["eventTime"] == "1970-01-01T00:00:02+00:00"


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/nobody", "file:///etc/passwd"])
def test_an_endpoint_that_does_not_answer_is_only_told(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv(VARIABLE, url)

    with pytest.warns(LineageWarning, match=VARIABLE):
        LineageEvents("shop", BEGAN).failed(ENDED)


def test_without_the_variable_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)

    LineageEvents("shop", BEGAN).started()
