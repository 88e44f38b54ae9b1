"""Files in the checkpoint of a Spark Structured Streaming query, which Spark writes.

Imports records' decoding and fields, wire's bounds and ids; spark_queries and agents.checkpoints import it.
"""
