"""Measurements of lakebed beside its peers: `make bench`, explained in docs/benchmarks.md."""
