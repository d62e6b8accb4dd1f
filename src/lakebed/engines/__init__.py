"""Engines read plans and write data files; they never commit."""
