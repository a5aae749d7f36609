"""Measures besides an attack's error: privacy, utility, geometry, guarantees."""
