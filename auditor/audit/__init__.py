"""One release measured: copies made, attacks fitted, errors and evidence found.

``engine`` chooses between ``numeric_engine`` (moments and rows) and ``categorical_engine`` (counts
and posteriors), which put the rooms below together: ``base``, ``numeric``, ``attempts``,
``counts``, ``categorical``, ``anonymity``, ``measures``, ``pooling`` and ``law_tests``. None of
these imports a module that stands here. Uses the rooms up to ``auditor.scenario``; many releases,
workers and finished tasks are ``auditor.runs``.
"""
