"""Built-in feature families, found through the entry point ``features`` like those of third parties."""
