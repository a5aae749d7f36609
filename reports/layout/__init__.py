"""How one format lays out what the other rooms say and draw: parts of the page, of the terminal report and of Markdown.

Uses the rooms beside it. The writers themselves are the modules of ``reports``, which are plugins.
"""
