"""Built-in renderers, one output format per module.

This plugin package reads results only. Four subpackages serve the renderers:

- ``figures`` selects values from results.
- ``wording`` writes sentences.
- ``charts`` draws.
- ``layout`` builds the document tree that terminal, Markdown and HTML write out.
"""
