"""Built-in renderers; they read results only.

``figures`` selects values, ``wording`` writes sentences, ``charts`` draws, ``layout`` builds the
document tree.
"""
