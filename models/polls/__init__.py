"""A poll of ``__consumer_offsets``, many records at a time: commits as columns, by numpy.

Imports models.wire; models.commits, the state, the shell and the history's jobs import it.
"""
