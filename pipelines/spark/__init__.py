"""The Spark session, its sources, options and files.

Imports models; every job imports it.
"""
