"""What the page shows at each of its addresses, as JSON objects made in steps.

Imports models and the rest of views; the web server imports it.
"""
