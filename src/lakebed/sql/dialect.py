"""The engine's SQL for sqlglot, plus time travel and `t@branch`; keeps where things stood."""

from typing import Any, ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.parser import Parser
from sqlglot.parsers.duckdb import DuckDBParser

SPAN = "span"  # (start, end) in the text; on table names, clauses and parameters
BRANCH = "branch"
TIME_TRAVEL = "time_travel"  # the word VERSION or TIMESTAMP, on a clause
# Stands for the `$` of a parameter: sqlglot takes `$1,$2` for the beginning of a `$tag$` string.
DOLLAR = "\x01"
_PHRASES = (
    ("VERSION", ("VERSION", "AS", "OF")),
    ("VERSION", ("SYSTEM_VERSION", "AS", "OF")),
    ("TIMESTAMP", ("TIMESTAMP", "AS", "OF")),
    ("TIMESTAMP", ("SYSTEM_TIME", "AS", "OF")),
)
# Far more than real queries need: they take less than one for each word.
_RETREATS, _RETREATS_PER_WORD = 2_000, 5
# Words of other dialects, or of statements: names like any other inside a query.
_NAMES = frozenset(
    [
        "APPLY",
        "CACHE",
        "FORCE",
        "GRANT",
        "INSTALL",
        "PARTITIONED_BY",
        "REGEXP",
        "REVOKE",
        "RLIKE",
        "ROLLBACK",
        "UNCACHE",
        "XOR",
    ]
)
# Operators of other dialects; here they are a parameter and what follows it.
_MARKS = frozenset(["?::", "??"])


class TooHard(Exception):
    """The parser tries the same words again and again; some nestings make it do so for ever."""


class LakeParser(DuckDBParser):
    # What a function takes is the engine's business; only those with a syntax of their own and
    # those that we look for are more than a name with arguments.
    FUNCTIONS: ClassVar[dict[str, Any]] = {
        name: DuckDBParser.FUNCTIONS[name] for name in ("COUNT", "COLUMNS", "UNNEST")
    }

    def reset(self) -> None:
        super().reset()
        self._retreats = 0

    def _retreat(self, index: int) -> None:
        if index != self._index:
            self._retreats += 1
            if self._retreats > _RETREATS + _RETREATS_PER_WORD * self._tokens_size:
                raise TooHard
        super()._retreat(index)

    def raise_error(self, message: str, token: Token | None = None) -> None:
        at = token or self._curr or None
        start = at.start if at else self._prev.end + 1 if self._prev else 0
        error = ParseError(message, [{"description": message, "start": start}])
        if self.error_level == ErrorLevel.IMMEDIATE:
            raise error
        self.errors.append(error)

    def _parse_expression(self) -> exp.Expr | None:
        named = self._curr.token_type in (TokenType.IDENTIFIER, *self.ALIAS_TOKENS)
        if self._next.token_type == TokenType.COLON and not named:
            # `SELECT :a` has no alias in front.
            return Parser._parse_expression(self)  # noqa: SLF001 - the parser below the dialect's own
        return super()._parse_expression()

    def _parse_escape(self, this: exp.Expr | None) -> exp.Expr | None:
        if not self._match(TokenType.ESCAPE):
            return this
        return self.expression(exp.Escape(this=this, expression=self._parse_unary()))

    def _parse_simplified_pivot(self, is_unpivot: bool | None = None) -> exp.Pivot:
        pivot = super()._parse_simplified_pivot(is_unpivot)
        for name, clause in (
            ("order", self._parse_order()),
            ("limit", self._parse_limit()),
            ("offset", self._parse_offset()),
        ):
            if clause is not None:
                pivot.set(name, clause)
        return pivot

    def _warn_unsupported(self) -> None:
        self.raise_error("this is no part of a query")

    def _parse_table_part(self, schema: bool = False) -> exp.Expr | None:
        start = self._curr.start
        if self._prev.token_type == TokenType.DOT and self._next.token_type != TokenType.L_PAREN:
            part = self._parse_id_var(any_token=True)  # no word is reserved behind a dot
        else:
            part = super()._parse_table_part(schema=schema)
        if part is not None:
            part.meta[SPAN] = (start, self._prev.end + 1)
        return part

    def _parse_table_parts(
        self,
        schema: bool = False,
        is_db_reference: bool = False,
        wildcard: bool = False,
        fast: bool = False,
    ) -> exp.Table | exp.Dot | None:
        if fast:  # the short cut knows nothing of branches and time travel
            return None
        table = super()._parse_table_parts(schema, is_db_reference, wildcard)
        if table is not None and self._curr.text == "@" and self._is_connected():
            if not self._next:
                self.raise_error("expected the name of a branch")
            self._advance()
            name = self._curr
            if name.token_type != TokenType.IDENTIFIER and not name.text.isidentifier():
                self.raise_error("expected the name of a branch")
            table.meta[BRANCH] = (name.text, name.end + 1)
            self._advance()
        return table

    def _parse_version(self) -> exp.Version | None:
        start = self._curr.start
        index = self._index
        self._match(TokenType.FOR)
        for kind, phrase in _PHRASES:
            if self._match_text_seq(*phrase):
                value_start = self._curr.start
                value = self._parse_bitwise()
                return self._clause(kind, value, start=start, value_start=value_start)
        self._retreat(index)
        return None

    def _parse_historical_data(self) -> Any:
        """`AT (VERSION => 3)`, as the engine spells it."""
        start = self._curr.start
        index = self._index
        if self._match_text_seq("AT") and self._match(TokenType.L_PAREN):
            kind = self._curr.text.upper()
            if kind in ("VERSION", "TIMESTAMP"):
                self._advance()
                if not self._match(TokenType.FARROW):
                    self.raise_error("expected =>")
                value_start = self._curr.start
                value = self._parse_bitwise()
                value_end = self._prev.end + 1
                self._match_r_paren()
                clause = self._clause(kind, value, start=start, value_start=value_start)
                clause.meta["value"] = (value_start, value_end)
                return clause
        self._retreat(index)
        return None

    def _clause(
        self, kind: str, value: exp.Expr | None, *, start: int, value_start: int
    ) -> exp.Version:
        if value is None:
            self.raise_error("expected a version or a time")
        end = self._prev.end + 1
        clause = exp.Version(this=exp.var(kind), expression=value, kind="AS OF")
        clause.meta.update({SPAN: (start, end), "value": (value_start, end), TIME_TRAVEL: kind})
        return clause

    def _parse_placeholder(self) -> exp.Expr | None:
        start = self._curr.start if self._curr else 0
        placeholder = super()._parse_placeholder()
        if placeholder is not None:
            placeholder.meta[SPAN] = (start, self._prev.end + 1)
        return placeholder


class LakeDialect(DuckDB):
    class Tokenizer(DuckDB.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]
        BIT_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("b'", "'"), ("B'", "'")]
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: kind
            for word, kind in DuckDB.Tokenizer.KEYWORDS.items()
            if word not in _NAMES | _MARKS
        }
        SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {
            **DuckDB.Tokenizer.SINGLE_TOKENS,
            DOLLAR: TokenType.PARAMETER,
        }
        COMMANDS: ClassVar[set[TokenType]] = set()  # a statement is never taken as it is

    Parser = LakeParser


class TypedParser(LakeParser):
    """Functions are more than names: what they are in other dialects is known."""

    FUNCTIONS: ClassVar[dict[str, Any]] = DuckDBParser.FUNCTIONS


class TypedDialect(LakeDialect):
    Parser = TypedParser
