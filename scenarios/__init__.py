"""The scenarios that ship with the package: a quickstart, and one for each figure of the papers."""
