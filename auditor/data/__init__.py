"""Tables to audit: where they come from, and the checks that make them fit to be audited."""
