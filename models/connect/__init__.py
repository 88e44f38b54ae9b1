"""What a Connect leader decides in each round: Kafka 4.3.1's two assignors, reproduced exactly.

Imports wire, assignors.java and assignment's fields; `caughtup assign` imports it.
"""
