"""Test the law that a scheme states, by uniform scores of a release.

The tests' p-values are evidence (``auditor.results.records``). The verdict is
``auditor.expectations.noise_follows_law``.
"""
