"""What was observed of reassignments, and how each began and ended.

Imports ids and histories; the other folders of reassignments import it.
"""
