"""Reassignments of every kind on a real cluster.

Imports cluster; benchmarks and tests import it.
"""
