"""Open transactions: which holds back a last stable offset, and whether it hangs.

Imports models.records; models.lag and models.state import it.
"""
