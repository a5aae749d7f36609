"""Test the law that a scheme states: turn a release into uniform scores, and look for structure in them.

The tests' p-values are evidence (``auditor.results.evidence``). The verdict is
``auditor.expectations.noise_follows_law``.
"""
