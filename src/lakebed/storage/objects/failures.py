"""The one translation of an object store's refusals into errors of the lake."""

import re
from types import TracebackType

from obstore.exceptions import (
    BaseError,
    GenericError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from lakebed.model.errors import (
    InvalidName,
    LakebedError,
    ObjectMissing,
    StorageDenied,
    StorageError,
    StorageUnavailable,
)
from lakebed.storage.failures import Action
from lakebed.storage.place import Place

_KEYS = "Check the keys, the region and the endpoint, and what the bucket allows these keys to do."
_SERVICE_CODE = re.compile(r"<Code>([A-Za-z]{3,60})</Code>")
_STATUS = re.compile(r"status code: (\d{3}[A-Za-z ]*)")
_DENIED = {
    "AccessDenied",
    "AuthenticationFailed",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "SignatureDoesNotMatch",
}
_NO_BUCKET = {"NoSuchBucket", "ContainerNotFound"}
_TOO_LONG = {"KeyTooLongError", "KeyTooLong"}


class Failures:
    """Whatever the store refuses inside becomes a StorageError or InvalidName that says where."""

    __slots__ = ("_action", "_path", "_place")

    def __init__(self, action: Action, path: str, place: Place) -> None:
        self._action = action
        self._path = path
        self._place = place

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        if isinstance(error, BaseError | OSError | NotImplementedError):
            # Not chained: the library's text shows requests whole, with what they carried.
            raise translated(error, self._action, self._path, self._place) from None


def translated(error: Exception, action: Action, path: str, place: Place) -> LakebedError:
    found, reason, hint = _meaning(error, place)
    message = f"cannot {action} {path!r} in {place.uri}: {reason}"
    return found(message, hint=hint, path=path)


def is_answered(error: Exception) -> bool:
    """Whether the store said no, so that surely nothing was done; a lost answer says nothing."""
    status = _status(error)
    return status is not None and status.startswith("4") and not status.startswith(("408", "429"))


def _meaning(error: Exception, place: Place) -> tuple[type[LakebedError], str, str]:
    code = _code(error)
    if code in _NO_BUCKET:
        return (
            StorageError,
            f"there is no bucket {place.bucket!r}",
            "Create the bucket, or correct the endpoint or region that it is looked for in.",
        )
    if code == "RequestTimeTooSkewed":
        return (
            StorageDenied,
            "the clocks of this machine and of the store differ by too much",
            "Set this machine's clock, best by NTP: what is signed at other times is refused.",
        )
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or code in _DENIED:
        return StorageDenied, f"the store refuses access ({code or 'no reason given'})", _KEYS
    if isinstance(error, FileNotFoundError):
        return (
            ObjectMissing,
            "no such object",
            "It was removed or never written; `lakebed check` names every file a table has lost.",
        )
    if code in _TOO_LONG:
        return InvalidName, "the key is too long", "Use a shorter namespace, table or value."
    if isinstance(error, GenericError) or _status(error) is not None:
        return _unanswered(error, code)
    return StorageError, _first_line(error), "Check the store and the options, then try again."


def _unanswered(error: Exception, code: str) -> tuple[type[LakebedError], str, str]:
    status = _status(error)
    if status is None and "redential" in _first_line(error):
        return StorageDenied, "there are no usable keys", _KEYS
    if status is not None and status.startswith("4") and not status.startswith(("408", "429")):
        return StorageError, f"{status} {code}".strip(), _KEYS
    if status is not None:
        return (
            StorageUnavailable,
            f"the store is overloaded or failing ({code or status})",
            "Try again later, with fewer writers at once.",
        )
    return (
        StorageUnavailable,
        "the store cannot be reached, or broke the connection off",
        "Check the endpoint and the network, then try again.",
    )


def _code(error: Exception) -> str:
    found = _SERVICE_CODE.search(str(error))
    return found[1] if found else ""


def _status(error: Exception) -> str | None:
    found = _STATUS.search(str(error))
    return found[1].strip() if found else None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]
