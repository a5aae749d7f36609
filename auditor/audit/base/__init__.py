"""A release under audit, its outcome, and its records."""
