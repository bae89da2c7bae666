"""Tables stored as Iceberg, read without a JVM: the adapters behind ``ports.Lake``."""
