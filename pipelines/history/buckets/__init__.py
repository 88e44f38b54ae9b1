"""A bucket's records and what was remembered of it, to its files.

Imports history.decoding; the history imports it.
"""
