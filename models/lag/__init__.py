"""How far groups are behind, in offsets and seconds, and what is to be said of it.

Imports models.histories; the state and the shell import it.
"""
