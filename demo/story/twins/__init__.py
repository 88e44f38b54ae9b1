"""``caughtup demo``'s first story: two applications alike grow, of which one follows caughtup.

Imports story, apps and cluster; the command imports it.
"""
