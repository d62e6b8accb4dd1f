"""Changes of rows on Spark, by the rules of the embedded engine; expressions are Spark's SQL."""
