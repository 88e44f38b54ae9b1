"""What somebody asks before doing something to a group, answered by playing it.

Imports state and simulation; commands and the page import it.
"""
