"""Collect scenario files with pytest: each expectation of a scenario is a test item."""
