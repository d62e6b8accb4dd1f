"""The public names and their signatures are pinned in tests/public_api.txt.

`make docs` writes that file again; its diff is the review of a change of the API.
"""

import difflib
import inspect
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import lakebed
from lakebed import pipelines

PINNED = Path(__file__).with_name("public_api.txt")


def test_public_api_is_the_pinned_one() -> None:
    pinned = PINNED.read_text(encoding="utf-8").splitlines()

    difference = list(difflib.unified_diff(pinned, describe(), "pinned", "now", lineterm=""))

    assert not difference, "run `make docs` and review:\n" + "\n".join(difference)


def test_every_public_name_is_listed_by_dir() -> None:
    assert set(lakebed.__all__) <= set(dir(lakebed))


def test_version_is_the_one_of_the_package() -> None:
    assert lakebed.__version__ == metadata.version("lakebed")


def describe() -> list[str]:
    """One line for each public name and, for a class, for each of its own public members."""
    ours = [line for n in sorted(lakebed.__all__) for line in _lines(n, getattr(lakebed, n))]
    steps = sorted(pipelines.__all__)
    return ours + [line for n in steps for line in _lines(f"pipelines.{n}", getattr(pipelines, n))]


def _lines(name: str, value: object) -> Iterator[str]:
    if inspect.isclass(value):
        yield _class_line(name, value)
        yield from _member_lines(name, value)
    elif inspect.isroutine(value):
        yield f"{name}{_signature(value)}"
    elif inspect.ismodule(value):
        yield f"{name}: module"
    else:
        yield f"{name}: {type(value).__name__}"


def _class_line(name: str, kind: type) -> str:
    if issubclass(kind, Exception):
        bases = ", ".join(base.__name__ for base in kind.__bases__)
        return f"{name}({bases}): {getattr(kind, 'code', '')}"
    return f"{name}{_signature(kind)}"


def _member_lines(name: str, kind: type) -> Iterator[str]:
    members = {member: owner for owner in reversed(kind.__mro__) for member in vars(owner)}
    for member, owner in sorted(members.items()):
        own = owner is kind or not issubclass(kind, Exception)
        if member.startswith("_") or not owner.__module__.startswith("lakebed") or not own:
            continue
        value = getattr(kind, member)
        if inspect.isroutine(value):
            yield f"{name}.{member}{_signature(value)}"
        elif not issubclass(kind, Exception):
            yield f"{name}.{member}"


def _signature(value: object) -> str:
    """Names, kinds and defaults; the types are mypy's business."""
    assert callable(value)
    try:
        signature = inspect.signature(value)
    except ValueError:
        return "(…)"
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    return str(inspect.Signature(bare))


if __name__ == "__main__":
    PINNED.write_text("\n".join(describe()) + "\n", encoding="utf-8")
