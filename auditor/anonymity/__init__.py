"""k-anonymity of tables: equivalence classes, what they promise, and how to make them."""
