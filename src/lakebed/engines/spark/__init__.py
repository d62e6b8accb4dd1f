"""Spark: sessions, plans as DataFrames, DataFrames as data files. Owns the import of PySpark."""
