"""Releases in folders: drawn, written, continued by later batches, and read in Python."""
