"""Groups as their records show them, on every protocol: generations, members, topics.

Imports models.wire; all code about groups imports it.
"""
