"""What pooling several copies buys, judged without trusting the scheme's word.

Uses ``numeric`` and ``counts`` beside it. The verdict is an expectation's:
``auditor.expectations.no_collusion_gain``.
"""
