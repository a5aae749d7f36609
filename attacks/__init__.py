"""Built-in attack plugins, one idea per file.

The package is found like a third-party plugin package. An attack uses ``auditor.plugin`` and the
arithmetic of ``auditor.adversary``, ``auditor.schemes`` and ``auditor.numerics``. ``auditor.audit``
measures its success.
"""
