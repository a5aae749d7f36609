"""Mutations of scenarios and tables, and their judge."""
