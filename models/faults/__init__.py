"""Unexpected failures, refused records, and records that were set aside.

Imports errors; the state and the shell import it.
"""
