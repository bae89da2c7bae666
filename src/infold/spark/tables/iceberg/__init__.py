"""
Tables stored as Iceberg, with Spark: the adapters behind ``port.Tables``, and what sessions need.

``adapters`` has everything that a storage brings; ``infold.spark.storages`` chooses it.
"""
