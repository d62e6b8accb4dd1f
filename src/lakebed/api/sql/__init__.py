"""SQL statements run against a lake: queries by the engine, everything else by the API."""
