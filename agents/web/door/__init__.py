"""Who may be connected, how many questions wait, and what is refused.

Imports agents.process; only agents.web imports it.
"""
