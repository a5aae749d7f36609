"""The perturbation schemes that come with the workbench, one idea a file."""
