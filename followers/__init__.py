"""Followers: how an application takes what caughtup recommends."""
