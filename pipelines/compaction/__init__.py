"""``caughtup pipeline compact``: one file of many, for past days.

Imports spark and the history's files; the command line imports it.
"""
