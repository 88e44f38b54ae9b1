"""What a follower on Faust has of its own: its tasks, its tables' copies, its user data, a store.

Imports followers.python and models; ``followers.faust`` imports it.
"""
