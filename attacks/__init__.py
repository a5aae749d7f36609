"""Built-in attack plugins, one idea per file.

The package is found like a third-party plugin package.
"""
