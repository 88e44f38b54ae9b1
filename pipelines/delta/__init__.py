"""The history's Delta tables: stores, writing, reading and upkeep.

Imports tables, schema and spark; history, replay and the command line import it.
"""
