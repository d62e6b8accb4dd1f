"""A script is cut into statements that know their places."""

from lakebed.sql.parse import parse_script
from lakebed.sql.query import Span


def test_statements_of_a_script_know_their_places() -> None:
    script = "SELECT 'a;b'; -- one; two\n\n  /* ; */ SELECT $$;$$ ;;\n"

    first, second = parse_script(script)

    assert (first.span, second.span) == (Span(0, 12, 1, 1), Span(37, 49, 3, 11))
    assert parse_script(" ; -- nothing\n;") == ()
