"""The lag of groups in offsets and seconds, and the verdict on it.

Imports models.histories; the state and the shell import it.
"""
