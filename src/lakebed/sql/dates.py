"""Sums of a day and an interval that are written out, as in DATE '1998-12-01' - INTERVAL 90 DAY."""

from calendar import monthrange
from datetime import date, timedelta

from sqlglot import exp

_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAYS = {"DAY": 1, "WEEK": 7}
_LARGEST = 100_000


def fold_dates(tree: exp.Expr) -> exp.Expr:
    """The tree with such sums worked out; it is changed in place."""
    for node in list(tree.find_all(exp.Add, exp.Sub)):
        day = _day(node.this)
        shifted = None if day is None else _shifted(day, node.expression, isinstance(node, exp.Sub))
        if shifted is None:
            continue
        folded = exp.cast(exp.Literal.string(shifted.isoformat()), "date")
        tree = folded if node is tree else tree
        node.replace(folded)
    return tree


def _day(node: exp.Expr) -> date | None:
    if type(node) is not exp.Cast or not node.this.is_string or not node.to.is_type("date"):
        return None
    try:
        return date.fromisoformat(str(node.this.this))
    except ValueError:
        return None


def _shifted(day: date, interval: exp.Expr, back: bool) -> date | None:
    if not isinstance(interval, exp.Interval) or not isinstance(interval.this, exp.Literal):
        return None
    written, unit = str(interval.this.this), interval.text("unit").upper().removesuffix("S")
    if not written.isascii() or not written.isdecimal() or int(written[:7]) > _LARGEST:
        return None
    count = -int(written) if back else int(written)
    try:
        if unit in _DAYS:
            return day + timedelta(days=count * _DAYS[unit])
        return _months_later(day, count * _MONTHS[unit]) if unit in _MONTHS else None
    except (ValueError, OverflowError):
        return None


def _months_later(day: date, months: int) -> date:
    """The same day of that month, or its last."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
