"""What was known over time: commits, end offsets, offset sums, and trends through them.

Imports models.wire and models.polls; lag, tasks, copies and reassignments import it.
"""
