"""Every setting of a lake and every property of a table: name, type, default, one line of help."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal as Choice

from lakebed.model.errors import InvalidSetting

Value = str | int | float
Kind = Choice["text", "int", "float", "size", "choice", "formats"]


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    kind: Kind
    default: Value
    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    per_table: bool = False  # may also be set as a table property


_CODECS = ("zstd", "snappy", "gzip", "lz4", "none")

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "publish.mode",
        "choice",
        "commit",
        "publish before a write returns, by a thread of its process,"
        " or by `lakebed publish --follow`",
        choices=("commit", "background", "service"),
        per_table=True,
    ),
    Setting(
        "publish.formats",
        "formats",
        "delta,iceberg",
        "formats new tables publish",
    ),
    Setting(
        "publish.iceberg.keep",
        "int",
        200,
        "newest snapshots listed in Iceberg's metadata.json",
        minimum=1,
        per_table=True,
    ),
    Setting(
        "publish.delta.checkpoint-interval",
        "int",
        10,
        "fewest commits between two Delta checkpoints",
        minimum=1,
        per_table=True,
    ),
    Setting(
        "publish.retry.base-s",
        "float",
        1.0,
        "first wait after a failed publication; doubles each time, with jitter",
        minimum=0.0,
    ),
    Setting(
        "publish.retry.max-s",
        "float",
        300.0,
        "longest wait between two attempts to publish",
        minimum=0.0,
    ),
    Setting(
        "publish.lag-warn-s",
        "float",
        5.0,
        "a warning, and exit 3 of `status`, when an unpublished commit is older than this",
        minimum=0.0,
    ),
    Setting(
        "commit.retries",
        "int",
        5,
        "attempts to place a commit again after a conflict (metadata only, data is kept)",
        minimum=0,
    ),
    Setting(
        "commit.isolation",
        "choice",
        "write_serializable",
        "whether a row change may follow a blind append it did not see",
        choices=("write_serializable", "serializable"),
        per_table=True,
    ),
    Setting(
        "database.timeout-s",
        "float",
        30.0,
        "how long to wait for the database or its write lock",
        minimum=0.0,
    ),
    Setting(
        "database.pool-size",
        "int",
        10,
        "most database connections of one lake handle",
        minimum=1,
    ),
    Setting(
        "lease.ttl-s",
        "float",
        3600.0,
        "how long a reader's or writer's lease lasts unless it is renewed",
        minimum=1.0,
    ),
    Setting(
        "write.target-file-size-bytes",
        "size",
        134_217_728,
        "roll to a new data file at about this size",
        minimum=1024,
        per_table=True,
    ),
    Setting(
        "write.parquet.compression-codec",
        "choice",
        "zstd",
        "compression of data files",
        choices=_CODECS,
        per_table=True,
    ),
    Setting(
        "write.parquet.compression-level",
        "int",
        3,
        "compression level, for codecs that have one",
        minimum=1,
        per_table=True,
    ),
    Setting(
        "write.parquet.row-group-rows",
        "int",
        1_048_576,
        "most rows of one row group",
        minimum=1,
        per_table=True,
    ),
    *(
        Setting(
            f"write.{operation}.mode",
            "choice",
            "merge-on-read",
            f"how {operation} takes rows away: a deletion vector, or the file's other rows anew",
            choices=("merge-on-read", "copy-on-write"),
            per_table=True,
        )
        for operation in ("delete", "update", "merge")
    ),
    Setting(
        "write.rewrite-above",
        "float",
        0.5,
        "a file that loses more than this part of its rows is written anew (1: never)",
        minimum=0.0,
        per_table=True,
    ),
    Setting(
        "write.rewrite-max-bytes",
        "size",
        134_217_728,
        "a larger file is not written anew because most of its rows are gone",
        minimum=0,
        per_table=True,
    ),
    Setting(
        "query.memory-limit",
        "size",
        0,
        "most memory of the SQL engine in one call; more is spilled; 0: half of the machine's",
        minimum=0,
    ),
    Setting(
        "query.threads",
        "int",
        0,
        "threads of the SQL engine in one call; 0: one per core",
        minimum=0,
    ),
    Setting(
        "query.spill-folder",
        "text",
        "",
        "where the SQL engine puts what memory cannot hold; empty: the system's temporary folder",
    ),
    Setting(
        "cache.dir",
        "text",
        "",
        "where blocks of data files from object stores are kept; empty: in the user's cache folder",
    ),
    Setting(
        "cache.size",
        "size",
        2_147_483_648,
        "most bytes kept there, by all processes together; 0: nothing is kept or looked for",
        minimum=0,
    ),
    Setting(
        "lakebed.upgrade",
        "choice",
        "auto",
        "whether a table may go to Iceberg v3, which deletion vectors need",
        choices=("auto", "never"),
        per_table=True,
    ),
)
BY_NAME = {s.name: s for s in SETTINGS}
_SIZES = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def find_setting(name: object) -> Setting:
    if not isinstance(name, str) or name not in BY_NAME:
        raise InvalidSetting(
            f"there is no setting {name!r}", hint="`lakebed settings` lists every one", name=name
        )
    return BY_NAME[name]


def parse_setting(setting: Setting, value: object) -> Value:
    """A value from a call, a variable, a row or a file, checked against its setting."""
    try:
        parsed = _parse(setting, value)
    except (TypeError, ValueError):
        raise _invalid(setting, value, f"is not a valid {setting.kind}") from None
    if isinstance(parsed, int | float) and not _in_range(setting, parsed):
        raise _invalid(setting, value, f"must be a number of at least {setting.minimum:g}")
    if setting.kind == "choice" and parsed not in setting.choices:
        raise _invalid(setting, value, f"must be one of: {', '.join(setting.choices)}")
    return parsed


def _in_range(setting: Setting, number: float) -> bool:
    return setting.minimum is None or setting.minimum <= number < float("inf")


def parse_formats(value: object) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, Iterable):
        raise InvalidSetting(f"formats {value!r} are no list", hint="use delta, iceberg or both")
    wanted = {str(n).strip().lower() for n in names}
    if not wanted or wanted - {"delta", "iceberg"}:
        raise InvalidSetting(
            f"formats {value!r} are not known", hint="use delta, iceberg or delta,iceberg"
        )
    return tuple(f for f in ("delta", "iceberg") if f in wanted)


def _invalid(setting: Setting, value: object, why: str) -> InvalidSetting:
    return InvalidSetting(
        f"setting {setting.name} = {value!r}: {why}", hint=setting.help, name=setting.name
    )


def _parse(setting: Setting, value: object) -> Value:
    text = str(value).strip()
    match setting.kind:
        case "int":
            return int(text)
        case "float":
            return float(text)
        case "size":
            return _size(text)
        case "formats":
            return ",".join(parse_formats(value))
        case _:
            return text


def _size(text: str) -> int:
    lowered = text.lower().replace(" ", "")
    for suffix, factor in _SIZES.items():
        if lowered.endswith(suffix) and not lowered[: -len(suffix)].endswith(("k", "m", "g")):
            return int(float(lowered[: -len(suffix)]) * factor)
    return int(lowered)
