"""What failed although nothing should, what was refused, what was set aside.

Imports errors; the state and the shell import it.
"""
