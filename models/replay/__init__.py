"""Recorded generations decided again under other settings.

Imports assignors and simulation; pipelines and the command line import it.
"""
