"""Groups as their records show them: generations, members, topics, on every protocol.

Imports models.wire; everything that looks at groups imports it.
"""
