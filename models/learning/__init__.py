"""The possible configs of an application, learned from the decisions of its leaders.

Imports inputs and exact of decisions; the rest of decisions, records and the shell import it.
"""
