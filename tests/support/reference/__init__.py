"""``make reference``: docs/reference/, made of settings, metrics and commands as the code has them."""
