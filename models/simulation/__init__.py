"""Groups simulated in virtual time, and decisions played until a group is balanced.

Imports assignors; decisions and replay import it.
"""
