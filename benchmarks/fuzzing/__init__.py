"""Mutated scenarios and tables, and the judge of what the program makes of them; see `benchmarks.fuzz`."""
