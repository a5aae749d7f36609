"""How messages are spelt: names quoted and shortened, the nearest valid name, text that no terminal obeys.

The lowest room: it uses nothing of the project. Which message is shown, and with what error, is decided where
the error is found.
"""
