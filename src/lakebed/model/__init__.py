"""Values: schema, partitioning, expressions, files, changes, errors, settings. No I/O."""
