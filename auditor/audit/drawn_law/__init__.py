"""Whether what was drawn follows the law that the scheme states: noise by its moments and row by row, categories by counts.

The tests' p-values are evidence (``auditor.results.evidence``); the verdict is
``auditor.expectations.noise_follows_law``.
"""
