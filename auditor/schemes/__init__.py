"""Built-in perturbation schemes, one idea per file.

``draw`` draws copies of any.
"""
