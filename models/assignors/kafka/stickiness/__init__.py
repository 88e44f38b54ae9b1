"""What both sticky assignors know of earlier tasks, and the orders they deal them in.

Imports assignors.java; kafka.sticky and kafka.public_sticky import it.
"""
