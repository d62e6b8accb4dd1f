"""The parameters of a statement, and the values given for them, checked before anything runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass

from lakebed.model.errors import SqlParameters
from lakebed.sql.query import Expression, Parameter, Select
from lakebed.sql.statements import Statement


def parameters_of(statement: Statement) -> tuple[str, ...]:
    """Every parameter by name, wherever it stands; those of `?` and `$1` are numbers."""
    return tuple(dict.fromkeys(_names(statement)))


def bind_parameters(
    statement: Statement, given: Sequence[object] | Mapping[str, object] | None
) -> dict[str, object]:
    """The value of each parameter by name; refuses missing and unknown ones."""
    names, values = set(parameters_of(statement)), _by_name(given)
    missing, unknown = sorted(names - set(values)), sorted(set(values) - names)
    if missing or unknown:
        said = [f"no value for {_shown(missing)}"] if missing else []
        said += [f"no parameter {_shown(unknown)} in the statement"] if unknown else []
        raise SqlParameters(
            "; ".join(said),
            hint=f"the statement's parameters are: {_shown(sorted(names)) or 'none'}",
            missing=missing,
            unknown=unknown,
        )
    return values


def _by_name(given: object) -> dict[str, object]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): value for name, value in given.items()}
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        return {str(number): value for number, value in enumerate(given, 1)}
    raise SqlParameters(
        f"parameters must be a list or a dict, not {type(given).__name__}",
        hint="pass [1, 'a'] for ?, {'name': 1} for $name",
    )


def _names(value: object) -> Iterator[str]:
    for found in _inside(value):
        match found:
            case Parameter(name):
                yield name
            case Expression(parameters=names) | Select(parameters=names):
                yield from names
            case _:
                pass


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, tuple):
        for item in value:
            yield from _inside(item)
    elif is_dataclass(value) and not isinstance(value, type):
        yield value
        for each in fields(value):
            yield from _inside(getattr(value, each.name))


def _shown(names: list[str]) -> str:
    return ", ".join(f"${name}" for name in names[:20])
