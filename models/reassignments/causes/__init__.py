"""Why a replica does not get into the ISR: the first cause that the facts prove.

Imports tracking and throttles; the verdict imports it.
"""
