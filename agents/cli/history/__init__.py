"""``caughtup history``: questions to the history's tables, answered on this machine without Spark.

Imports DuckDB and deltalake where it is called; ``main`` names it.
"""
