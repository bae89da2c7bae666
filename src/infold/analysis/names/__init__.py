"""What every name of a query refers to: relations, their columns, types and origins."""
