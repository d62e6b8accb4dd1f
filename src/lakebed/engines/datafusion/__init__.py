"""DataFusion: a session in which tables are found by name. Owns the import."""
