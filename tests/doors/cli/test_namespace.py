"""lakebed namespace create, list, show, set, drop."""

from tests.doors.cli.command import Lakebed


def test_created_namespaces_are_listed_with_those_around_them(lake: Lakebed) -> None:
    lake.ok("namespace", "create", "sales.eu")

    assert lake.json("namespace", "list") == [{"name": "sales"}, {"name": "sales.eu"}]
    assert lake.json("namespace", "list", "sales") == [{"name": "sales.eu"}]
    assert lake.ok("namespace", "list").stdout.split() == ["name", "sales", "sales.eu"]


def test_empty_list_is_an_empty_array(lake: Lakebed) -> None:
    assert lake.json("namespace", "list") == []
    assert lake.ok("namespace", "list").stdout == ""


def test_properties_are_set_shown_and_unset(lake: Lakebed) -> None:
    lake.ok("namespace", "create", "sales", "--property", "owner=Ada", "--property", "note=a=b")

    lake.ok("namespace", "set", "sales", "owner=Žofie", "--unset", "note")

    shown = {"name": "sales", "properties": {"owner": "Žofie"}, "namespaces": [], "tables": []}
    assert lake.json("namespace", "show", "sales") == shown


def test_second_creation_is_an_error_unless_asked_for(lake: Lakebed) -> None:
    lake.ok("namespace", "create", "sales")

    assert lake("namespace", "create", "sales", "--json").error["code"] == "NAMESPACE_EXISTS"
    assert lake("namespace", "create", "sales", "--if-missing").exit_code == 0


def test_drop_takes_only_an_empty_namespace(lake: Lakebed) -> None:
    lake.ok("table", "create", "sales.orders", "id long")

    refused = lake("namespace", "drop", "sales", "--json")
    lake.ok("table", "drop", "sales.orders", "--purge")
    dropped = lake.json("namespace", "drop", "sales")

    assert refused.error["code"] == "NAMESPACE_NOT_EMPTY"
    assert dropped == {"dropped": "sales"}
    assert lake.json("namespace", "list") == []


def test_set_without_a_change_is_wrong_usage(lake: Lakebed) -> None:
    lake.ok("namespace", "create", "sales")

    assert lake("namespace", "set", "sales").exit_code == 64
    assert lake("namespace", "set", "sales", "no-equal-sign").exit_code == 64


def test_unknown_namespace_is_an_error(lake: Lakebed) -> None:
    assert lake("namespace", "show", "nope", "--json").error["code"] == "NAMESPACE_NOT_FOUND"
