"""What an application's configs can be, by the decisions that its leaders made.

Imports decisions; the state is to import it.
"""
