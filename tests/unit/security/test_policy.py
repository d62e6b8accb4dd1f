"""The one decision: the owner may do everything, nobody else anything yet; every call asks."""

from collections.abc import Callable
from dataclasses import replace

import pytest

import lakebed
from lakebed.security.policy import OWNER, Principal, decide, require

STRANGER = Principal("stranger")


@pytest.mark.parametrize("action", ["read", "write", "create", "alter", "drop", "admin"])
def test_only_the_owner_is_allowed(action: str) -> None:
    assert decide(OWNER, action, "s.t").allowed  # type: ignore[arg-type]
    assert not decide(STRANGER, action, "s.t").allowed  # type: ignore[arg-type]


def test_a_refusal_names_who_what_and_where() -> None:
    with pytest.raises(lakebed.Forbidden) as refused:
        require(STRANGER, "write", "s.t")

    assert refused.value.code == "FORBIDDEN"
    assert refused.value.context == {
        "principal": "stranger",
        "action": "write",
        "resource": "s.t",
    }
    assert refused.value.hint


def test_every_call_asks_for_its_principal() -> None:
    with lakebed.open(":memory:") as lake:
        table = lake.create_table("s.t", [{"n": 1}])
        stranger = replace(lake._parts, principal=STRANGER)
        other, theirs = type(lake)(stranger), lakebed.Table(stranger, table._head("read"))
        calls: list[Callable[[], object]] = [
            lambda: other.create_namespace("a"),
            other.namespaces,
            lambda: other.namespace_properties("s"),
            lambda: other.set_namespace_properties("s", {}),
            lambda: other.drop_namespace("s"),
            lambda: other.create_table("s.u", "n long"),
            lambda: other.table("s.t"),
            lambda: other.has_table("s.t"),
            other.tables,
            lambda: other.rename_table("s.t", "s.v"),
            lambda: other.drop_table("s.t"),
            other.dropped_tables,
            lambda: other.purge_table("s.t"),
            other.transaction,
            other.publish,
            other.status,
            other.check,
            other.settings,
            lambda: other.set_setting("publish.mode", "commit"),
            lambda: theirs.version,
            lambda: theirs.schema,
            lambda: theirs.append([{"n": 2}]),
            lambda: theirs.overwrite([{"n": 2}]),
            theirs.alter,
            lambda: theirs.set_properties({"a": "b"}),
            lambda: theirs.set_formats("delta"),
            theirs.scan,
            theirs.history,
            theirs.files,
        ]

        for call in calls:
            with pytest.raises(lakebed.Forbidden):
                call()

        assert table.version == 0
