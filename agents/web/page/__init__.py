"""What the page shows at each of its addresses, as typed views that are made in steps.

Imports models; the web server and ``caughtup top`` import it.
"""
