"""Predicates mean the same to Polars as to the reference."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from lakebed.engines.arrow.evaluate import matches
from lakebed.engines.arrow.pushed import weaker_predicate
from lakebed.engines.polars.predicate import to_expression
from lakebed.engines.polars.terms import term_of
from lakebed.model.binding import bind
from tests.unit.predicate_cases import predicates, rows, schemas, to_batch


@given(st.data())
def test_a_predicate_keeps_the_rows_that_the_reference_keeps(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    batch = to_batch(schema, data.draw(rows(schema)))
    predicate = bind(data.draw(predicates(schema)), schema)

    kept = pl.DataFrame(batch).with_row_index("row").filter(to_expression(predicate))

    answers = matches(predicate, batch).to_pylist()
    assert kept["row"].to_list() == [row for row, answer in enumerate(answers) if answer]


@given(st.data())
def test_what_is_read_back_from_an_expression_keeps_all_of_its_rows(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    batch = to_batch(schema, data.draw(rows(schema)))
    predicate = bind(data.draw(predicates(schema)), schema)

    weaker = weaker_predicate(term_of(to_expression(predicate)), schema)

    if weaker is not None:
        answers = matches(predicate, batch).to_pylist()
        kept = matches(weaker, batch).to_pylist()
        assert all(keeps for keeps, answer in zip(kept, answers, strict=True) if answer)
