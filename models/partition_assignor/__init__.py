"""StreamsPartitionAssignor: from the members' subscriptions to every member's assignment.

Imports assignors; decisions and the followers import it.
"""
