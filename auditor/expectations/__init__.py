"""The expectations that come with the workbench: statements of a scenario that an audit proves or refutes."""
