"""Whether Kafka's assignor, or a follower's rules, explain what a leader decided.

Imports decisions.inputs and the assignors; learning and the rest of decisions import it.
"""
