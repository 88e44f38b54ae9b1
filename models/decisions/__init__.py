"""What a generation of a Kafka Streams group was decided from, by whom, and what was best.

Imports assignors, groups, tasks and learning; copies, the state and the shell import it.
"""
