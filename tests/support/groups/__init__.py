"""Groups as the records of ``__consumer_offsets`` that they leave, on every protocol."""
