"""How an application written in Python follows recommendations, whichever client it uses."""
