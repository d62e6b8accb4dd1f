"""DuckDB: the SQL engine. It reads data files itself where it can do so exactly."""
