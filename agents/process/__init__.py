"""What the process knows and does about itself: health, pulses, supervision, garbage.

Imports errors and clock of agents; nearly everything imports it.
"""
