"""The attacks that come with the workbench, one idea a file; found like any third party's plugin package.

Written with ``auditor.plugin``, and with the arithmetic of ``auditor.adversary``, ``auditor.schemes`` and
``auditor.numerics``. An attack sees what its adversary has; who measures how well it does is
``auditor.audit``.
"""
