"""The one tree of errors: each has a stable code, `retryable`, and ends in a hint.

LakebedError
├── InvalidInput     bad names, schemas, expressions, settings, URIs, rows; nothing was written
│   ├── InvalidName  InvalidSchema  InvalidExpression  InvalidSetting  InvalidUri
│   ├── SchemaMismatch  ConstraintViolated  UnreadableInput  UnsupportedFeature
│   ├── AmbiguousMerge
│   └── SqlError         SqlUnsupported  SqlParameters  SqlColumnUnknown  SqlNameUnknown
│                        SqlNameAmbiguous  SqlTypeMismatch
├── QueryError       QueryInterrupted  QueryOutOfMemory  DivisionByZero  ValueOutOfRange
│                    ConversionFailed
├── NotFound         LakeNotFound  NamespaceNotFound  TableNotFound  VersionNotFound
│                    RefNotFound  ViewNotFound  RunNotFound
├── AlreadyExists    LakeExists  NamespaceExists  NamespaceNotEmpty  TableExists
│                    RefExists
├── CommitError      CommitConflict  CommitUnknown  NoChanges  IdempotencyMismatch
│                    TransactionClosed  BranchDiverged  TableHeld
│                    WriterClosed
├── PublishError     ForeignCommit
├── DatabaseError    DatabaseUnavailable  DatabaseLocked  DatabaseCorrupt  DatabaseNewer
│                    UpgradeRequired
├── StorageError     ObjectMissing  StorageFull  StorageReadOnly  DataCorrupt
│                    StorageDenied  StorageUnavailable
├── Forbidden
├── StreamChanged    a table that is followed did what the reader cannot follow
├── MissingExtra     an optional library is not installed
├── SparkError       ExecutorLost  JavaMissing  JarsUnreachable  JarCorrupt
└── PipelineError    PipelineInvalid  StepFailed  ExpectationFailed  PipelineBusy  RunLost
"""

from typing import ClassVar


class LakebedError(Exception):
    """Root of every error lakebed raises: `code` is stable, `hint` says what to do next."""

    code: ClassVar[str] = "ERROR"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "", **context: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.context = context

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process boundaries (workers, executors) with everything they know.
        return _rebuild, (type(self), self.message, self.hint, self.context)


def _rebuild(
    kind: type[LakebedError], message: str, hint: str, context: dict[str, object]
) -> LakebedError:
    return kind(message, hint=hint, **context)


class InvalidInput(LakebedError):
    code = "INVALID_INPUT"


class InvalidName(InvalidInput):
    code = "INVALID_NAME"


class InvalidSchema(InvalidInput):
    code = "INVALID_SCHEMA"


class InvalidExpression(InvalidInput):
    code = "INVALID_EXPRESSION"


class InvalidSetting(InvalidInput):
    code = "INVALID_SETTING"


class InvalidUri(InvalidInput):
    code = "INVALID_URI"


class SchemaMismatch(InvalidInput):
    """Rows do not fit the table; `context` names the column and, where known, the row."""

    code = "SCHEMA_MISMATCH"


class AmbiguousMerge(InvalidInput):
    """Two rows of a source stand for one row of the table; the message names their key."""

    code = "AMBIGUOUS_MERGE"


class ConstraintViolated(InvalidInput):
    """A row makes a CHECK constraint FALSE; `context` names both."""

    code = "CONSTRAINT_VIOLATED"


class UnreadableInput(InvalidInput):
    code = "UNREADABLE_INPUT"


class UnsupportedFeature(InvalidInput):
    code = "UNSUPPORTED_FEATURE"


class SqlError(InvalidInput):
    """SQL text that cannot be understood; `context` has line, character and statement number."""

    code = "SQL_SYNTAX"


class SqlUnsupported(SqlError):
    """SQL that is understood and not done here: the hint says what to write instead."""

    code = "SQL_UNSUPPORTED"


class SqlParameters(SqlError):
    """The parameters given are not those that the statement asks for."""

    code = "SQL_PARAMETERS"


class SqlColumnUnknown(SqlError):
    code = "SQL_UNKNOWN_COLUMN"


class SqlNameUnknown(SqlError):
    """No table, function or type of that name."""

    code = "SQL_UNKNOWN_NAME"


class SqlNameAmbiguous(SqlError):
    """A name that several relations of a query have."""

    code = "SQL_AMBIGUOUS_NAME"


class SqlTypeMismatch(SqlError):
    """Operands or arguments whose types do not go together."""

    code = "SQL_TYPES"


class QueryError(LakebedError):
    """A query that was understood failed while it ran."""

    code = "QUERY_ERROR"


class QueryInterrupted(QueryError):
    code = "QUERY_INTERRUPTED"


class QueryOutOfMemory(QueryError):
    code = "QUERY_OUT_OF_MEMORY"


class DivisionByZero(QueryError):
    code = "DIVISION_BY_ZERO"


class ValueOutOfRange(QueryError):
    code = "VALUE_OUT_OF_RANGE"


class ConversionFailed(QueryError):
    code = "CONVERSION_FAILED"


class NotFound(LakebedError):
    code = "NOT_FOUND"


class LakeNotFound(NotFound):
    code = "LAKE_NOT_FOUND"


class NamespaceNotFound(NotFound):
    code = "NAMESPACE_NOT_FOUND"


class TableNotFound(NotFound):
    code = "TABLE_NOT_FOUND"


class VersionNotFound(NotFound):
    code = "VERSION_NOT_FOUND"


class ViewNotFound(NotFound):
    code = "VIEW_NOT_FOUND"


class RefNotFound(NotFound):
    code = "REF_NOT_FOUND"


class RunNotFound(NotFound):
    code = "RUN_NOT_FOUND"


class AlreadyExists(LakebedError):
    code = "ALREADY_EXISTS"


class LakeExists(AlreadyExists):
    code = "LAKE_EXISTS"


class NamespaceExists(AlreadyExists):
    code = "NAMESPACE_EXISTS"


class NamespaceNotEmpty(AlreadyExists):
    code = "NAMESPACE_NOT_EMPTY"


class TableExists(AlreadyExists):
    code = "TABLE_EXISTS"


class RefExists(AlreadyExists):
    code = "REF_EXISTS"


class CommitError(LakebedError):
    code = "COMMIT_ERROR"


class CommitConflict(CommitError):
    """Another commit came first and ours cannot follow it; nothing was written."""

    code = "COMMIT_CONFLICT"
    retryable = True


class CommitUnknown(CommitError):
    """The connection was lost while committing: the commit may or may not have happened."""

    code = "COMMIT_UNKNOWN"
    retryable = True


class NoChanges(CommitError):
    code = "NO_CHANGES"


class TableHeld(CommitError):
    code = "TABLE_HELD"
    retryable = True


class BranchDiverged(CommitError):
    code = "BRANCH_DIVERGED"


class IdempotencyMismatch(CommitError):
    code = "IDEMPOTENCY_MISMATCH"


class TransactionClosed(CommitError):
    code = "TRANSACTION_CLOSED"


class WriterClosed(CommitError):
    code = "WRITER_CLOSED"


class PublishError(LakebedError):
    code = "PUBLISH_ERROR"
    retryable = True


class ForeignCommit(PublishError):
    """A file we did not write stands where our next version belongs; it is never overwritten."""

    code = "FOREIGN_COMMIT"
    retryable = False


class DatabaseError(LakebedError):
    code = "DATABASE_ERROR"


class DatabaseUnavailable(DatabaseError):
    code = "DATABASE_UNAVAILABLE"
    retryable = True


class DatabaseLocked(DatabaseError):
    code = "DATABASE_LOCKED"
    retryable = True


class DatabaseCorrupt(DatabaseError):
    code = "DATABASE_CORRUPT"


class DatabaseNewer(DatabaseError):
    code = "DATABASE_NEWER"


class UpgradeRequired(DatabaseError):
    code = "UPGRADE_REQUIRED"


class StorageError(LakebedError):
    code = "STORAGE_ERROR"


class ObjectMissing(StorageError):
    code = "OBJECT_MISSING"


class StorageFull(StorageError):
    code = "STORAGE_FULL"


class StorageReadOnly(StorageError):
    code = "STORAGE_READ_ONLY"


class StorageDenied(StorageError):
    """An object store refuses the keys, or what they are used for."""

    code = "STORAGE_DENIED"


class StorageUnavailable(StorageError):
    """An object store cannot be reached or is overloaded, for longer than retries last."""

    code = "STORAGE_UNAVAILABLE"
    retryable = True


class DataCorrupt(StorageError):
    code = "DATA_CORRUPT"


class Forbidden(LakebedError):
    code = "FORBIDDEN"


class StreamChanged(LakebedError):
    """A followed table took rows away, or changed its columns."""

    code = "STREAM_CHANGED"


class MissingExtra(LakebedError):
    code = "MISSING_EXTRA"


class SparkError(LakebedError):
    """Something that Spark needs is not there, or the session given cannot do what is asked."""

    code = "SPARK_ERROR"


class ExecutorLost(SparkError):
    """With rows that it kept for a change: the change can be made again, from its beginning."""

    code = "EXECUTOR_LOST"
    retryable = True


class JavaMissing(SparkError):
    code = "JAVA_MISSING"


class JarsUnreachable(SparkError):
    code = "JARS_UNREACHABLE"
    retryable = True


class JarCorrupt(SparkError):
    code = "JAR_CORRUPT"


class PipelineError(LakebedError):
    """A run of a pipeline did not succeed; no table was changed."""

    code = "PIPELINE_ERROR"


class PipelineInvalid(PipelineError):
    """Found before anything ran: steps, names, modes, parameters."""

    code = "PIPELINE_INVALID"


class StepFailed(PipelineError):
    """A step raised, or gave what cannot be written; `context` names it and the user's line."""

    code = "STEP_FAILED"


class ExpectationFailed(PipelineError):
    code = "EXPECTATION_FAILED"


class PipelineBusy(PipelineError):
    """Another run of the same pipeline is under way."""

    code = "PIPELINE_BUSY"
    retryable = True


class RunLost(PipelineError):
    """A run was silent for so long that another took its place."""

    code = "RUN_LOST"
    retryable = True
