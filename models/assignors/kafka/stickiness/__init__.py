"""The parts that both sticky assignors share: previous tasks, iteration orders, pairs of tasks.

Imports assignors.java; kafka.sticky and kafka.public_sticky import it.
"""
