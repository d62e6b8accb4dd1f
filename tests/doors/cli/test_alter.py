"""lakebed table alter and append --merge-schema: columns at every depth, layout, constraints."""

import pytest

from tests.doors.cli.command import Lakebed


@pytest.fixture
def people(lake: Lakebed) -> Lakebed:
    lake.ok(
        *("table", "create", "hr.people"),
        "id int not null, age int, home struct<city: string, zip: int>, tags list<struct<n: int>>",
    )
    lake.write("a.jsonl", '{"id": 1, "age": 30, "home": {"city": "Brno"}, "tags": [{"n": 1}]}\n')
    lake.ok("append", "hr.people", "a.jsonl")
    return lake


def test_everything_about_columns_changes_in_one_commit(people: Lakebed) -> None:
    commit = people.json(
        *("table", "alter", "hr.people", "--rename-column", "home.city=town"),
        *("--add-column", "home.street string comment 'with number'", "--drop-column", "home.zip"),
        *("--add-column", "note string", "--move-column", "note after id"),
        *("--widen-column", "age=long", "--widen-column", "tags.element.n=long"),
        *("--make-optional", "id", "--default", "age=18", "--move-column", "home first"),
    )
    people.write("b.jsonl", '{"id": 2, "home": {"town": "Praha", "street": "Dlouhá 1"}}\n')
    people.ok("append", "hr.people", "b.jsonl")

    columns = people.json("table", "show", "hr.people")["columns"]
    assert (commit["version"], commit["operation"]) == (2, "alter")
    assert [c["name"] for c in columns] == ["home", "id", "note", "age", "tags"]
    assert columns[3] == {
        "id": 2,
        "name": "age",
        "type": "long",
        "required": False,
        "default": 18,
        "comment": None,
    }
    assert columns[4]["type"] == "list<struct<n: long>>"
    assert people.rows("hr.people", "--columns", "id,age,home") == [
        {"id": 1, "age": 30, "home": {"town": "Brno", "street": None}},
        {"id": 2, "age": 18, "home": {"town": "Praha", "street": "Dlouhá 1"}},
    ]
    people.ok("table", "alter", "hr.people", "--drop-default", "age")
    assert people.json("table", "show", "hr.people")["columns"][3]["default"] is None


def test_a_default_belongs_to_the_column_added_beside_it(lake: Lakebed) -> None:
    lake.ok("table", "create", "s.t", "id int", "--formats", "iceberg")
    lake.write("a.csv", "id\n1\n")
    lake.ok("append", "s.t", "a.csv")

    lake.ok("table", "alter", "s.t", "--add-column", "n int", "--default", "n=7")

    assert lake.rows("s.t") == [{"id": 1, "n": 7}]
    assert "n int default 7" in lake.ok("table", "show", "s.t").stdout


def test_layout_and_key_change(people: Lakebed) -> None:
    people.ok(
        *("table", "alter", "hr.people", "--partition-by", "bucket(4, id),truncate(10, age)"),
        *("--sort-by", "age desc", "--primary-key", "id"),
    )
    shown = people.json("table", "show", "hr.people")
    assert shown["partition_by"] == ["bucket(4, id)", "truncate(10, age)"]
    assert (shown["sort_by"], shown["primary_key"]) == (["age desc nulls last"], ["id"])

    people.ok("table", "alter", "hr.people", "--unpartitioned", "--unsorted")
    shown = people.json("table", "show", "hr.people")
    assert (shown["partition_by"], shown["sort_by"]) == ([], [])


def test_constraints_are_added_and_taken_out(people: Lakebed) -> None:
    people.ok("table", "alter", "hr.people", "--add-constraint", "adult=age >= 18")
    people.write("b.csv", "id,age\n2,40\n3,17\n")

    refused = people("append", "hr.people", "b.csv", "--json")

    assert (refused.exit_code, refused.error["code"]) == (1, "CONSTRAINT_VIOLATED")
    assert "row 2 violates constraint 'adult'" in refused.error["message"]
    assert people.json("table", "show", "hr.people")["constraints"] == {"adult": "age >= 18"}
    people.ok("table", "alter", "hr.people", "--drop-constraint", "adult")
    people.ok("append", "hr.people", "b.csv")
    people.ok("table", "create", "hr.t", "n int", "--constraint", "positive=n > 0")
    assert people.json("table", "show", "hr.t")["constraints"] == {"positive": "n > 0"}


def test_files_bring_their_columns_along(people: Lakebed) -> None:
    people.write("b.csv", "id,age,email\n2,40,a@b.cz\n")
    refused = people("append", "hr.people", "b.csv", "--json")
    assert "--merge-schema" in refused.error["hint"]

    commit = people.json("append", "hr.people", "b.csv", "--merge-schema")

    assert (commit["version"], commit["added_rows"]) == (2, 1)
    assert people.rows("hr.people", "--columns", "id,email") == [
        {"id": 1, "email": None},
        {"id": 2, "email": "a@b.cz"},
    ]
    types = [c["type"] for c in people.json("table", "show", "hr.people")["columns"]]
    assert types[:2] == ["int", "int"]


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (["--move-column", "age"], 64),
        (["--move-column", "age after"], 64),
        (["--move-column", "age after nope"], 1),
        (["--widen-column", "age=string"], 1),
        (["--widen-column", "age"], 64),
        (["--default", "age=young"], 1),
        (["--add-column", "home.city string"], 1),
        (["--add-column", "nope.x string"], 1),
        (["--partition-by", "nope"], 1),
        (["--primary-key", "age"], 1),
        (["--add-constraint", "c=nope > 1"], 1),
        (["--add-constraint", "young=age < 10"], 1),
        (["--drop-constraint", "nope"], 1),
    ],
)
def test_what_cannot_be_done_changes_nothing(
    people: Lakebed, arguments: list[str], exit_code: int
) -> None:
    answer = people("table", "alter", "hr.people", *arguments)

    assert (answer.exit_code, bool(answer.stderr)) == (exit_code, True)
    assert people.json("table", "show", "hr.people")["version"] == 1


def test_new_columns_cannot_come_from_stdin_or_with_an_overwrite(people: Lakebed) -> None:
    piped = people("append", "hr.people", "-", "--format", "csv", "--merge-schema", stdin="id\n1\n")
    both = people("append", "hr.people", "a.jsonl", "--merge-schema", "--overwrite")

    assert (piped.exit_code, both.exit_code) == (1, 64)
