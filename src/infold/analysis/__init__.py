"""What follows from a model's SQL: names, references, fingerprints, findings."""
