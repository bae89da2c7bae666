"""Compare two definitions of a model: whether they give the same rows, and how they differ."""
