"""The parts of the follower for Faust: tasks, copies of tables, user data, a store.

Imports followers.python and models; ``followers.faust`` imports it.
"""
