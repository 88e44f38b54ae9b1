"""Partition reassignments: the verdict on each, its cause, its time left, what to do.

Imports records; the state and the shell import it.
"""
