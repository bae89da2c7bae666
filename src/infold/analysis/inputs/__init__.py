"""Which tables a model reads, how lookups join them, and what can be followed row by row."""
