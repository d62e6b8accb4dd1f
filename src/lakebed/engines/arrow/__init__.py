"""Arrow: the reference reader and the writer of small batches; every other engine stands on it."""
