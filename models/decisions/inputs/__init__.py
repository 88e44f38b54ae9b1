"""A generation's inputs: gathered from the wire, or told by its leader.

Imports groups, tasks and assignors; the rest of decisions imports it.
"""
