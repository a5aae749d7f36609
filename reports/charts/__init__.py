"""Charts of the page, of notebooks and of the terminal."""
