"""Document trees of reports, and their terminal writer."""
