"""Apache Iceberg: metadata, manifests, publishing and reading."""
