"""The renderers that come with the workbench: they read results, and nothing else."""
