"""Document trees of reports, and their terminal writer.

They use ``figures``, ``wording`` and ``charts``.
"""
