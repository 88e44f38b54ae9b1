"""``caughtup demo --story connect``: a document's six cases on real Connect workers.

Imports demo/connect and the stage; the command imports it.
"""
