"""Errors, types and text, which every room uses."""
