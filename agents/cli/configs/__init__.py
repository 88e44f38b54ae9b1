"""``caughtup configs``: what an application's configs are, as a table and as a settings file.

Only ``main`` imports it, when it is called.
"""
