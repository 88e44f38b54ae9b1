"""Why a group is as it is: the causes of its verdict, the true cause first.

Imports everything that the state does; models.shown and the agents use it.
"""
