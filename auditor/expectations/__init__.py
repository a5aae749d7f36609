"""Built-in expectations: statements that an audit proves or refutes.

A plugin package. Expectations judge results and evidence, and read no row.
"""
