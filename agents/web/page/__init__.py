"""The typed view of each address of the page, made in steps.

Imports models; the web server and ``caughtup top`` import it.
"""
