"""Values over time: commits, end offsets and offset sums, and the trends of these.

Imports models.wire and models.polls; lag, tasks, copies and reassignments import it.
"""
