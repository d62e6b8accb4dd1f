"""Errors carry what they know: through pickles, with a code, a hint and a place in the tree."""

import pickle
from collections.abc import Iterator

import pytest

import lakebed
from lakebed.model import errors


def kinds(kind: type[lakebed.LakebedError]) -> Iterator[type[lakebed.LakebedError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from kinds(below)


@pytest.mark.parametrize("kind", [*kinds(lakebed.LakebedError)], ids=lambda kind: kind.__name__)
def test_an_error_survives_a_pickle(kind: type[lakebed.LakebedError]) -> None:
    error = kind("what happened", hint="what to do", table="a.t", row=7)

    again = pickle.loads(pickle.dumps(error))

    assert type(again) is kind
    assert (again.message, again.hint) == ("what happened", "what to do")
    assert (again.context, again.code, str(again)) == (error.context, kind.code, "what happened")


def test_a_real_conflict_survives_a_pickle(lake: lakebed.Lake) -> None:
    lake.create_table("a.t", [{"id": 1}])
    late = lake.transaction()
    late.table("a.t").overwrite([{"id": 2}])
    lake.table("a.t").overwrite([{"id": 3}])

    with pytest.raises(lakebed.CommitConflict) as conflict:
        late.commit()

    again = pickle.loads(pickle.dumps(conflict.value))
    assert again.retryable
    assert (again.context["table"], again.context["base"], again.context["head"]) == ("a.t", 0, 1)


def test_every_kind_is_drawn_in_the_tree() -> None:
    drawn = (errors.__doc__ or "").split()

    assert [k.__name__ for k in kinds(lakebed.LakebedError) if k.__name__ not in drawn] == []
