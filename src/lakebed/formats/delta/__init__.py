"""Delta Lake: its log published from the rows, and read back. Knows nothing of other formats."""
