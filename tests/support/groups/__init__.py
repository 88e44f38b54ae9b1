"""Groups on every protocol, as records of ``__consumer_offsets``."""
