"""``caughtup pipeline history``: what happened on a cluster, as tables.

Imports generations, spark and progress; the command line imports it.
"""
