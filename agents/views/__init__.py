"""The state as rows for people: the page, the terminal and the lag topic show the same ones.

Imports models; web, command line and agents import it.
"""
