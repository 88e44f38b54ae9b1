"""Make a bucket's files from its records and its state.

Imports history.decoding; the history imports it.
"""
