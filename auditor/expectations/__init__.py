"""The expectations that come with the workbench: statements of a scenario that an audit proves or refutes.

A plugin package. They judge results and evidence (``auditor.results``) and look at no row; whoever
gathers evidence is ``auditor.audit``, which knows no expectation in turn.
"""
