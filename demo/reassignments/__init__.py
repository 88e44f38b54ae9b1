"""Reassignments of every kind, done to a real cluster.

Imports cluster; benchmarks and tests import it.
"""
