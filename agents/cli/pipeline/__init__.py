"""``caughtup pipeline``: the jobs on Spark.

Imports pipelines when a command is called; only ``main`` and the benchmarks import it.
"""
