"""The values that the API, the terminal and the page show of a cluster.

Imports the state and all below it; the shell imports it.

Each value is a line of the API and of ``--format json``, and a row of the terminal's tables and of
the page. Unknown fields are absent from its JSON. The values of reassignments are in
``reassignments/shown.py``, and those of streams on Spark in ``pipeline_progress.py``.
"""
