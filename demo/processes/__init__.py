"""Child processes that never outlive this one, and free ports.

Imports nothing of demo; everything that starts a process imports it.
"""
