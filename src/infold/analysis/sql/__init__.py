"""A model's SQL as text, tokens and sqlglot's tree, before any name in it is looked up."""
