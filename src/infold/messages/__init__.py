"""What users read when something is wrong: lists with one entry a message, and no other place."""
