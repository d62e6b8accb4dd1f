"""Changes of rows: which rows, found by an engine; the results are values that api commits."""
