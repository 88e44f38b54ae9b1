"""The partition assignors of consumer groups: those of the Java client, and of the group coordinator.

``sticky.py`` decides for members with the same topics as ``same_topics.py`` says, and else as
``mixed_topics.py`` does.
"""
