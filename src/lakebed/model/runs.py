"""Runs of pipelines, as values: what was read, written and expected, and where inputs stand."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebed.model.ids import TableId, Version

RUNNING, SUCCEEDED, UNCHANGED = "running", "succeeded", "unchanged"
FAILED, INTERRUPTED, LOST = "failed", "interrupted", "lost"


@dataclass(frozen=True, slots=True)
class ExpectationReport:
    """`rows` are those that are not as expected, where rows are meant."""

    text: str
    action: str
    passed: bool
    rows: int = 0
    detail: str | None = None
    quarantine: str | None = None


@dataclass(frozen=True, slots=True)
class InputReport:
    """A table from one version (exclusive; None: from the beginning) to another, or files."""

    name: str
    kind: str
    after: int | None = None
    until: int | None = None
    files: int | None = None
    rows: int | None = None  # of a table: those there are, or that are compared for changes


@dataclass(frozen=True, slots=True)
class StepWork:
    """What Spark read and wrote for a step, its temporary files too."""

    rows_read: int = 0
    bytes_read: int = 0
    rows_written: int = 0
    bytes_written: int = 0


@dataclass(frozen=True, slots=True)
class StepReport:
    table: str
    status: str  # done, unchanged or failed
    how: str
    duration_ms: int
    rows: int | None = None  # that the step gave, less those dropped
    dropped: int = 0
    inputs: tuple[InputReport, ...] = ()
    expectations: tuple[ExpectationReport, ...] = ()
    work: StepWork | None = None  # where Spark tells: not through Spark Connect


@dataclass(frozen=True, slots=True)
class Failure:
    code: str
    message: str
    hint: str = ""
    step: str | None = None
    place: str | None = None  # the user's file and line


@dataclass(frozen=True, slots=True)
class RunReport:
    parameters: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[StepReport, ...] = ()
    written: Mapping[str, int] = field(default_factory=dict)  # table -> version
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Run:
    id: str
    pipeline: str
    status: str
    started_ms: int
    finished_ms: int | None
    author: str
    report: RunReport


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a step has read an input; `mark` is for what has no version.

    A version of None in an attachment stands for the one that its commit makes.
    """

    step: str
    input: str
    table_id: TableId | None = None
    version: Version | None = None
    mark: str | None = None
    table: str | None = None  # by name, where the commit makes the version


@dataclass(frozen=True, slots=True)
class FileMark:
    """A file that a step has read, as it was then."""

    step: str
    input: str
    path: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Derivation:
    """Table `output` was made from an input: a step of lineage, with versions where there are."""

    output: str
    input: str
    input_id: TableId | None = None
    after: Version | None = None
    until: Version | None = None
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LineageEdge:
    """A derivation that was committed."""

    output: str
    output_version: int
    input: str
    input_id: TableId | None
    after: int | None
    until: int | None
    columns: Mapping[str, tuple[str, ...]]
    run_id: str
    pipeline: str
    depth: int = 1


@dataclass(frozen=True, slots=True)
class RunAttachment:
    """The end of a run, which rides in the transaction of its commit."""

    run_id: str
    pipeline: str
    report: RunReport
    cursors: tuple[Cursor, ...] = ()
    marks: tuple[FileMark, ...] = ()
    forgotten: tuple[str, ...] = ()  # steps whose marks begin anew
    derivations: tuple[Derivation, ...] = ()
