"""Terms of partitioning and sorting as texts that model.partitioning reads."""

from lakebed.sql.reader import Reader


def read_term(reader: Reader) -> str:
    """`region`, `day(ts)`, `bucket(16, id)`, `truncate(id, 10)`"""
    start = reader.start
    path = reader.path("a column or a transform")
    if len(path) > 1 or not reader.sees("("):
        return ".".join(path)

    def argument() -> str:
        if reader.peek().kind == "number":
            return str(reader.integer())
        return ".".join(reader.path("a column"))

    arguments = reader.listed(argument)
    if len(arguments) > 2 or all(a.isdecimal() for a in arguments):
        raise reader.error(
            "a transform takes a column and at most one number",
            hint="write day(ts), bucket(16, id) or truncate(4, name)",
            offset=start,
        )
    return f"{path[0].lower()}({', '.join(arguments)})"


def read_sort_term(reader: Reader) -> str:
    """`amount DESC NULLS LAST`"""
    words = [read_term(reader)]
    direction = reader.take_any("ASC", "DESC")
    if direction:
        words.append(direction.lower())
    if reader.take("NULLS"):
        place = reader.take_any("FIRST", "LAST")
        if place is None:
            raise reader.error("expected FIRST or LAST")
        words += ["nulls", place.lower()]
    return " ".join(words)
