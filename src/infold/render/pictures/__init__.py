"""Pictures in a terminal: bars, shades on an axis of time, and the graph of models."""
