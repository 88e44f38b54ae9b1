"""Followers: how an application takes what caughtup recommends.

Imports models; applications import it, and benchmarks and tests.
"""
