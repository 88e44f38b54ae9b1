"""Groups simulated in virtual time, and decisions played until a group is balanced.

Imports assignors and models/connect; decisions and replay import it.
"""
