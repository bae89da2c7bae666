"""Values and protocols that every room shares; nothing here reads or writes."""
