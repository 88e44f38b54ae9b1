"""Where settings come from, what is said of wrong ones, and how they are written down.

Imports settings, errors and kafka of agents; the command line imports it.
"""
