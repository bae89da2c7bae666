"""How far around a cell of the output each input is read, and why no farther."""
