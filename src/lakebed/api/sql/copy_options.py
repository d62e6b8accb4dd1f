"""Options of COPY: those that each format has, checked before a file is opened."""

from collections.abc import Mapping, Sequence

from lakebed.api.sql.context import Values
from lakebed.engines.arrow.csv_in import CsvForm
from lakebed.engines.arrow.files_out import OutForm
from lakebed.model.errors import SqlUnsupported
from lakebed.sql.query import Parameter
from lakebed.sql.statements import Value

_SAME = {
    "delim": "delimiter",
    "sep": "delimiter",
    "null": "nullstr",
    "nulls": "nullstr",
    "null_value": "nullstr",
    "quotechar": "quote",
    "codec": "compression",
}
_READ = {"csv": ("header", "delimiter", "quote", "escape", "nullstr", "skip", "encoding")}
_WRITTEN = {"csv": ("header", "delimiter"), "parquet": ("compression",)}
_CODECS = ("zstd", "snappy", "gzip", "lz4", "none")
_UTF8 = ("utf8", "utf-8", "utf_8")
Given = Sequence[tuple[str, Value]]


def csv_form(
    form: str | None, given: Given, values: Values, columns: tuple[str, ...] | None
) -> CsvForm:
    """How the files of COPY … FROM are written; `columns` are named by the statement."""
    options = _known(given, values, form, _READ.get(form or "", ()), "FROM")
    if form != "csv":
        return CsvForm()
    if "encoding" in options and str(options["encoding"]).lower() not in _UTF8:
        raise SqlUnsupported("COPY reads UTF-8 text only", hint="convert the file to UTF-8 first")
    return CsvForm(
        delimiter=_sign(options, "delimiter", ","),
        quote=_sign(options, "quote", '"'),
        escape=_escape(options),
        has_header=_truth(options, "header", default=True),
        nulls=_texts(options, "nullstr", ("",)),
        skip=_count(options, "skip"),
        columns=columns,
    )


def out_form(form: str, given: Given, values: Values) -> OutForm:
    options = _known(given, values, form, _WRITTEN.get(form, ()), "TO")
    codec = str(options.get("compression", "zstd")).lower()
    if codec not in _CODECS:
        raise _bad("compression", codec, f"use {', '.join(_CODECS)}")
    return OutForm(
        has_header=_truth(options, "header", default=True),
        delimiter=_sign(options, "delimiter", ","),
        compression=codec,
    )


def _known(
    given: Given, values: Values, form: str | None, names: Sequence[str], verb: str
) -> Mapping[str, object]:
    found: dict[str, object] = {}
    for written, value in given:
        name = _SAME.get(written, written)
        if name not in names:
            listed = ", ".join(each.upper() for each in ("format", *names))
            raise SqlUnsupported(
                f"COPY … {verb} has no option {written.upper()} for {form or 'this format'}",
                hint=f"its options are {listed}",
            )
        if name in found:
            raise SqlUnsupported(f"option {written.upper()} is given twice", hint="leave one out")
        found[name] = values[value.name] if isinstance(value, Parameter) else value
    return found


def _sign(options: Mapping[str, object], name: str, default: str) -> str:
    value = options.get(name, default)
    sign = "\t" if value == "\\t" else value
    if not isinstance(sign, str) or len(sign.encode()) != 1 or sign in "\r\n":
        raise _bad(name, value, "give one ASCII character, such as ';'")
    return sign


def _escape(options: Mapping[str, object]) -> str | None:
    """By default, as in most files, a quote is written twice."""
    if options.get("escape") in (None, options.get("quote", '"')):
        return None
    return _sign(options, "escape", "")


def _truth(options: Mapping[str, object], name: str, *, default: bool) -> bool:
    value = options.get(name, default)
    words = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}
    if str(value).lower() not in words:
        raise _bad(name, value, "give true or false")
    return words[str(value).lower()]


def _texts(options: Mapping[str, object], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = options.get(name, default)
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, tuple | list) or not all(isinstance(t, str) for t in texts):
        raise _bad(name, value, "give a text, or a list of texts: ['', 'NA']")
    return tuple(texts)


def _count(options: Mapping[str, object], name: str) -> int:
    value = options.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _bad(name, value, "give a number of lines")
    return value


def _bad(name: str, value: object, hint: str) -> SqlUnsupported:
    return SqlUnsupported(f"option {name.upper()} = {value!r} is not possible", hint=hint)
