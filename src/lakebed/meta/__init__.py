"""The only SQL: the store, one file of SQL per noun, two dialects, numbered migrations."""
