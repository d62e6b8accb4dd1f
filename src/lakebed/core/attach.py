"""Attachments: idempotency keys and application transactions ride in a commit's transaction."""

from collections.abc import Sequence

import orjson

from lakebed.meta import attachments
from lakebed.meta.attachments import Answer
from lakebed.meta.store import Tx
from lakebed.model import errors
from lakebed.model.changes import Proposal, TableChanges
from lakebed.model.errors import DatabaseLocked, IdempotencyMismatch, InvalidInput, LakebedError
from lakebed.model.history import CommitRecord, TableHead
from lakebed.model.ids import MAIN_LINE, Line, TableId, Version

_ERRORS: dict[str, type[LakebedError]] = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, LakebedError)
}
Places = Sequence[tuple[TableId, Version, Line]]


def check_answer(tx: Tx, proposal: Proposal) -> Places | None:
    """What was answered to this key before: the commits it made, or its refusal raised again."""
    if proposal.idempotency_key is None:
        return None
    return look_up(tx, proposal.principal, proposal.idempotency_key, proposal.request_digest or "")


def look_up(tx: Tx, principal: str, key: str, digest: str) -> Places | None:
    answer = attachments.find_answer(tx, principal, key)
    if answer is None:
        return None
    if answer.digest != digest:
        raise IdempotencyMismatch(
            f"idempotency key {key!r} was used for another request",
            hint="use a new key for a new request",
            key=key,
        )
    result = orjson.loads(answer.result)
    if answer.status == "refused":
        kind = _ERRORS.get(result["kind"], LakebedError)
        raise kind(result["message"], hint=result["hint"], replayed=True)
    return [(TableId(t), Version(v), Line(line)) for t, v, line in result]


def answer_of(
    outcome: LakebedError | Sequence[tuple[TableHead, CommitRecord]],
) -> tuple[str, object] | None:
    """(status, result) to keep; None for an error that may not happen again."""
    if not isinstance(outcome, LakebedError):
        return "done", [(head.id, commit.version, commit.line) for head, commit in outcome]
    if outcome.retryable or "replayed" in outcome.context:
        return None
    if isinstance(outcome, IdempotencyMismatch):
        return None
    kind = type(outcome).__name__
    return "refused", {"kind": kind, "message": outcome.message, "hint": outcome.hint}


def keep_answer(tx: Tx, proposal: Proposal, answer: tuple[str, object] | None) -> None:
    if proposal.idempotency_key is None or answer is None:
        return
    status, result = answer
    kept = Answer(proposal.request_digest or "", status, orjson.dumps(result).decode())
    if not attachments.insert_answer(tx, proposal.principal, proposal.idempotency_key, kept):
        # The same key was answered while we worked; the next attempt finds that answer.
        raise DatabaseLocked("another request with this idempotency key was faster", hint="retry")


def repeated_app_transaction(tx: Tx, proposed: Sequence[TableChanges]) -> Places | None:
    """Where an application's transaction was committed before, when it was."""
    places = []
    for ours in proposed:
        if ours.app_transaction is None or ours.table_id is None:
            continue
        app_id, number = ours.app_transaction
        found = attachments.find_app_transaction(tx, ours.table_id, app_id)
        if found is not None and found[0] >= number:
            places.append((ours.table_id, found[1], MAIN_LINE))
    if places and len(places) < len(proposed):
        raise InvalidInput(
            "some tables of this commit have its application transaction already, others not",
            hint="use one application name for one set of tables",
        )
    return places or None
