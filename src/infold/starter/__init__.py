"""The small project that ``infold init`` writes: files to copy, nothing to import."""
