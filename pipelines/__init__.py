"""The data pipeline on Spark: history of commits, end offsets and lag."""
