"""Connect worker clusters: their own topics beside what their groups were told, and what differs.

Imports connect, records and ids; state imports it.
"""
