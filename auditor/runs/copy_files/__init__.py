"""Releases in folders: drawn, written, continued by later batches, and read in Python.

No file in a folder helps a recipient to undo the noise. The moments that noise is scaled to are in no
file, because an exact covariance reveals the last record to an adversary who knows all others.
"""
