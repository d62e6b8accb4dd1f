"""Refs that change between two tries of publishing them: what is shown last is what there is."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

import lakebed
from lakebed.formats.iceberg import publish as publish_module

pytestmark = pytest.mark.filterwarnings("ignore::lakebed.PublishWarning")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        yield lake


def shown(table: lakebed.Table) -> set[str]:
    folder = Path(table.location, "metadata")
    path = folder / f"{(folder / 'version-hint.text').read_text()}.metadata.json"
    return set(orjson.loads(path.read_bytes())["refs"])


def fail(_: str) -> None:
    raise InterruptedError


def test_a_ref_made_after_a_broken_publication_is_shown(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table("s.t", [{"id": 1}])
    with monkeypatch.context() as patch:
        patch.setattr(publish_module, "crash_point", fail)
        table.create_branch("a")
    assert shown(table) == {"main"}

    table.create_tag("b")
    lake.publish()

    assert shown(table) == {"main", "a", "b"}
    assert lake.check().findings == []


def test_a_commit_published_in_two_tries_leaves_refs_to_their_own_publication(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table("s.t", [{"id": 1}])
    with monkeypatch.context() as patch:
        patch.setattr(publish_module, "crash_point", fail)
        table.append([{"id": 2}])

    table.create_branch("a")
    lake.publish()

    assert shown(table) == {"main", "a"}
    assert lake.check().findings == []
