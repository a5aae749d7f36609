"""What all tests share: property tests draw the same examples every time, so that a green run stays green."""

from hypothesis import settings

settings.register_profile("audit", derandomize=True, deadline=None)
settings.load_profile("audit")
