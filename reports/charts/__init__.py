"""Charts of the page, of notebooks and of the terminal.

They draw from ``figures``; ``layout`` places them.
"""
