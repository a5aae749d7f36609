"""Attacks on a numeric release: fitted and measured on every coalition."""
