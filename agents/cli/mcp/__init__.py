"""``caughtup mcp``: answers for programs that speak the Model Context Protocol, read only.

Only ``server`` and ``http`` import the package mcp, which is an extra.
"""
