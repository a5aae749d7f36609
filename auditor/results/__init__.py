"""Records, tables, files and comparisons of results, without engine or data.

Renderers read results through this package.
"""
