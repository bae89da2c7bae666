"""What a step reads of its inputs: rows at a version, changed rows, rows of changed keys."""
