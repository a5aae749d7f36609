"""The renderers that come with the workbench: they read results, and nothing else.

A plugin package: each module writes one format. Built from ``figures`` (what is read), ``wording`` (what is
said), ``charts`` (what is drawn) and ``layout`` (the tree of a report, which terminal, Markdown and page write
out). Of ``auditor`` they use ``results`` and text made safe; what was measured, and how, is ``auditor.audit``.
"""
