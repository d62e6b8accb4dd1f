"""SQL text in; predicates out. Sole owner of sqlglot."""
