"""Table formats that lakebed publishes and imports."""
