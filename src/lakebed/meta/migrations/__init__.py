"""Numbered migrations: never edited once released, applied in order. See `meta.migrate`."""
