"""``caughtup demo``'s first story: two equal applications grow; one follows caughtup.

Imports story, apps and cluster; the command imports it.
"""
