"""Text of messages: quoted names, spelling suggestions, safe output.

This package imports nothing of the project.
"""
