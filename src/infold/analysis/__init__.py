"""
What a model's SQL proves about its table: how far each of its cells reads, and what is refused.

``compile`` is the entry. It parses a query (``sql``), looks up its names (``names``), derives how
far each cell reads (``bounds``, with ``times`` for expressions of time), decides what can be
followed row by row (``inputs``), and applies ``rules``.
"""
