"""Catalog, commit loop, planning, outbox: decisions in pure functions, effects in one place."""
