"""What StreamsPartitionAssignor makes of a decision for each member.

Imports assignors; decisions and the followers import it.
"""
