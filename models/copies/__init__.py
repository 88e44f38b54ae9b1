"""Copies of tasks that restore: their rates, times left, verdicts, and probing rebalances.

Imports decisions and histories; the state and the shell import it.
"""
