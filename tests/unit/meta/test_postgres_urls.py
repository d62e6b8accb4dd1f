"""PostgreSQL URLs: the schema is ours, the rest is the driver's, and no password is ever shown."""

import pytest

from lakebed.meta.postgres import redact, split_url
from lakebed.model.errors import InvalidUri


@pytest.mark.parametrize(
    ("url", "rest", "schema"),
    [
        ("postgresql://h/db", "postgresql://h/db", "public"),
        ("postgresql://h/db?schema=lake", "postgresql://h/db", "lake"),
        (
            "postgresql://u:p@h:1/db?sslmode=require&schema=a_1",
            "postgresql://u:p@h:1/db?sslmode=require",
            "a_1",
        ),
        ("postgresql:///db?host=/tmp&schema=x", "postgresql:///db?host=/tmp", "x"),
        ("postgresql://h/db?password=a+b%2B&schema=x", "postgresql://h/db?password=a+b%2B", "x"),
    ],
)
def test_the_schema_is_taken_out(url: str, rest: str, schema: str) -> None:
    assert split_url(url) == (rest, schema)


@pytest.mark.parametrize(
    "query", ["schema=", "schema=a-b", "schema=a;drop", "schema=1a", "schema=a&schema=b"]
)
def test_a_schema_that_is_no_plain_name_is_refused(query: str) -> None:
    with pytest.raises(InvalidUri) as caught:
        split_url(f"postgresql://h/db?{query}")

    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://user:hunter2@host/db",
        "connection to postgresql://u:hunter2@h:5432/db?schema=x failed",
        "host=h password=hunter2 user=u",
        "postgresql://h/db?user=u&password=hunter2",
        "postgresql://u:hunter2%40x@h/db",
    ],
)
def test_passwords_are_never_shown(text: str) -> None:
    assert "hunter2" not in redact(text)
