"""The attacks that come with the workbench, one idea a file; found like any third party's plugin package."""
