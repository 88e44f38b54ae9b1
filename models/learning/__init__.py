"""What an application's configs can be, by the decisions that its leaders made.

Imports inputs and exact of decisions; the rest of decisions, records and the shell import it.
"""
