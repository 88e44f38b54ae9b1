"""Load settings from every place, describe wrong ones, and write them as TOML.

Imports settings, errors and kafka of agents; the command line imports it.
"""
