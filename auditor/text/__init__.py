"""Text of messages: quoted names, spelling suggestions, safe output.

This package imports no other package of the project.
"""
