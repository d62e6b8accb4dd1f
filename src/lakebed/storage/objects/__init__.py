"""Warehouses on S3, Google Cloud Storage and Azure; sole owner of obstore (`lakebed[objects]`)."""
