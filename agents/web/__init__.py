"""The web port: server, access, the page's views, the JSON endpoints and ``/metrics``.

Imports views and process; only ``app`` imports it.
"""
