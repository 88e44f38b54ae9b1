"""Questions about a planned change of a group, answered by simulating it.

Imports state and simulation; commands and the page import it.
"""
