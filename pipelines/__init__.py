"""The data pipeline on Spark: history of commits, end offsets and lag.

Imports models; the command line imports it when a job is called.
"""
