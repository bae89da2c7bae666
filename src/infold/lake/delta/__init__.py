"""Delta Lake: tables as folders of the warehouse, read by their logs and by deltalake."""
