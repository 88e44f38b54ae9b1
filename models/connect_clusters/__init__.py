"""Connect worker clusters: their own topics, their groups' assignments, and what differs.

Imports connect, records and ids; state imports it.
"""
