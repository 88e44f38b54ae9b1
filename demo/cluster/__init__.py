"""A real Kafka cluster on loopback: brokers, topics, load, throttles.

Imports processes and java; everything in demo imports it.
"""
