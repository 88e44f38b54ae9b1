"""The history's tables in Delta Lake: where they are, how they are written, read and kept small.

Imports tables, schema and spark; history, replay and the command line import it.
"""
