"""The one decision: may this principal do this to that? Pure; every API call asks it."""

from dataclasses import dataclass
from typing import Literal as Choice

from lakebed.model.errors import Forbidden

Action = Choice["read", "write", "create", "alter", "drop", "admin"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever opens the database directly is its owner: database access is full access."""

    name: str
    is_owner: bool = False


OWNER = Principal("owner", is_owner=True)


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str


def decide(principal: Principal, action: Action, resource: str) -> Decision:
    if principal.is_owner:
        return Decision(True, "the owner may do everything")
    return Decision(False, f"{principal.name} has no grant to {action} {resource}")


def require(principal: Principal, action: Action, resource: str) -> None:
    decision = decide(principal, action, resource)
    if not decision.allowed:
        raise Forbidden(
            decision.reason,
            hint="open the lake's database directly, as its owner",
            principal=principal.name,
            action=action,
            resource=resource,
        )
