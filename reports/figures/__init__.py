"""Values of an audit, selected from its results.

They use ``auditor.results`` only.
"""
