"""``caughtup history``: queries of the history's tables, on this machine and without Spark.

Imports DuckDB and deltalake where it is called; ``main`` names it.
"""
