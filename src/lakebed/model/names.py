"""Names of namespaces, tables and columns: what is allowed, and why the rest is refused."""

from dataclasses import dataclass
from urllib.parse import unquote

from lakebed.model.errors import InvalidName

_MAX_BYTES = 255
# Iceberg's metadata columns: a user column of that name could not be told apart from them.
_RESERVED_COLUMNS = frozenset(
    {
        "_row_id",
        "_last_updated_sequence_number",
        "_file",
        "_pos",
        "_deleted",
        "_spec_id",
        "_partition",
    }
)


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    namespace: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))


def parse_table_name(text: str) -> TableName:
    parts = _split(text, "table")
    if len(parts) < 2:
        raise InvalidName(
            f"table name {text!r} has no namespace",
            hint="write NAMESPACE.TABLE, for example sales.orders",
            name=text,
        )
    return TableName(parts[:-1], parts[-1])


def parse_table_ref(text: str) -> tuple[TableName, str | None]:
    """`sales.orders`, or `sales.orders@audit`: a table as a branch or tag has it."""
    if not isinstance(text, str):
        return parse_table_name(text), None
    name, at, ref = text.partition("@")
    if at and not ref:
        raise InvalidName(
            f"{text!r} names no branch or tag", hint="write NAMESPACE.TABLE@REF", name=text
        )
    return parse_table_name(name), ref or None


def parse_namespace(text: str) -> tuple[str, ...]:
    return _split(text, "namespace")


def check_column_name(name: str) -> None:
    if not isinstance(name, str):
        raise InvalidName(f"column name must be text, not {type(name).__name__}", hint="pass a str")
    _check_part(name, "column")
    if "." in name:
        raise InvalidName(
            f"column name {name!r} contains a dot",
            hint="a dot separates nested fields; use another character",
            name=name,
        )
    if name.lower() in _RESERVED_COLUMNS:
        raise InvalidName(
            f"column name {name!r} is reserved by Iceberg", hint="choose another name", name=name
        )


def is_text(value: object) -> bool:
    """Text that every database and format can hold: no NUL, no lone surrogates."""
    if not isinstance(value, str) or "\x00" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _split(text: str, what: str) -> tuple[str, ...]:
    if not isinstance(text, str):
        raise InvalidName(f"{what} name must be text, not {type(text).__name__}", hint="pass a str")
    parts = tuple(text.split("."))
    for part in parts:
        _check_part(part, what)
        if "@" in part:
            raise InvalidName(
                f"{what} name {text!r} contains an @",
                hint="it stands between a table and the name of a branch or tag",
                name=text,
            )
        if "/" in part or "\\" in part:
            raise InvalidName(
                f"{what} name {text!r} contains a slash",
                hint="separate namespace levels with dots",
                name=text,
            )
        if any(p in (".", "..") for p in _decoded(part).replace("\\", "/").split("/")):
            raise InvalidName(
                f"{what} name {text!r} reads as a path", hint="choose another name", name=text
            )
    return parts


def _decoded(part: str) -> str:
    """What a reader sees that decodes a path, however often."""
    while "%" in part and (decoded := unquote(part)) != part:
        part = decoded
    return part


def _check_part(part: str, what: str) -> None:
    if not part or part != part.strip():
        raise InvalidName(
            f"{what} name {part!r} is empty or begins or ends with white space",
            hint="give every level a name without surrounding spaces",
            name=part,
        )
    if any(ord(c) < 32 or ord(c) == 127 for c in part):
        raise InvalidName(
            f"{what} name {part!r} contains a control character",
            hint="use printable characters",
            name=part,
        )
    try:
        size = len(part.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidName(
            f"{what} name {part!r} is not valid Unicode", hint="use valid characters", name=part
        ) from None
    if size > _MAX_BYTES:
        raise InvalidName(
            f"{what} name of {size} bytes is too long (at most {_MAX_BYTES})",
            hint="choose a shorter name",
            name=part,
        )
