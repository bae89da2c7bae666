"""What users read when something is wrong: one function for each message, and no other place."""
