"""Delta Lake as a storage: its tables, jars and settings, for Spark."""
