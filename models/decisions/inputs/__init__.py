"""A generation's inputs: gathered from the wire, or told by its leader.

Imports groups, tasks and assignors; learning and the rest of decisions import it.
"""
