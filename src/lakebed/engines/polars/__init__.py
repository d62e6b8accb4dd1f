"""Polars: plans as lazy frames, whose filters and columns reach the files. Owns the import."""
