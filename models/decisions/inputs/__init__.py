"""A generation's inputs: gathered from the group's records, or published by its leader.

Imports groups, tasks and assignors; learning and the rest of decisions import it.
"""
