"""Suggestions for names that do not exist."""

from lakebed.model.nearest import nearest


def test_names_that_differ_in_case_are_the_nearest() -> None:
    assert nearest("S.ORDERS", ["s.orders", "s.other", "t.orders"]) == ["s.orders"]
    assert nearest("Amount", ["count", "AMOUNT"]) == ["AMOUNT"]
    assert nearest("amont", ["Amount", "Account"], most=2)[0] == "Amount"


def test_nothing_is_suggested_for_what_nothing_is_like() -> None:
    assert nearest("zzz", ["orders"]) == []
    assert nearest("orders", []) == []
