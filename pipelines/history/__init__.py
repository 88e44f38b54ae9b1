"""``caughtup pipeline history``: the history of a cluster, as Delta tables.

Imports generations, spark and progress; the command line imports it.
"""
