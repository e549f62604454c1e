"""The books of a fleet in engines made for many rows: the same questions, answered from what a lake holds."""
