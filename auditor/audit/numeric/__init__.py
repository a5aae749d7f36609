"""Arithmetic of numeric releases: moments, maps, errors and error bars, as arrays."""
