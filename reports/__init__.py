"""Built-in renderers; they read results only.

``figures``, ``reading`` and ``matrix`` select values, ``sentences``, ``verdict`` and ``headline``
write text, ``charts`` draws, ``document`` and the modules that import it build the document tree.
"""
