"""Values of an audit, selected from its results."""
