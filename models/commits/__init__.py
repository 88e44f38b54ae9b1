"""The commits of every group, in columns: a row for each group, topic and partition.

Imports models.histories and models.polls; lag, tasks, decisions, copies and the state import it.
"""
