"""Decisions played until a group is balanced.

Imports assignors; decisions and replay import it.
"""
