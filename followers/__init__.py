"""Followers: they apply caughtup's recommendations in applications.

Imports models; applications import it, and benchmarks and tests.
"""
