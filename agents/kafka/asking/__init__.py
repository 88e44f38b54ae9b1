"""Ask coordinators about their groups: who is in them, and what they have committed.

It is for clusters whose ``__consumer_offsets`` may not be read, and for share groups. It needs DESCRIBE
only: on the groups, and on the topics that they read.
"""
