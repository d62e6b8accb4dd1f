"""What a check finds: findings are wrong, notes are only worth knowing."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Finding:
    table: str
    code: str
    message: str
    path: str | None = None
    format: str | None = None  # the published format it is about; None: rows or data files


@dataclass(slots=True)
class Report:
    """Clean when nothing is wrong; orphans and what waits for publication are notes."""

    tables: int = 0
    files: int = 0
    findings: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    repaired: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.findings
