"""What is shown of a cluster: each thing as one typed value.

Imports the state and all below it; the shell imports it.

A value here is the line of the API and of ``--format json``, and the row of the terminal's tables
and of the page. What isn't known is absent from its JSON. Reassignments have theirs in
``reassignments/shown.py``, since their models compute it.
"""
