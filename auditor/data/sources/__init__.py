"""The data sources that come with the workbench; any ``.csv`` or ``.parquet`` path is a source too."""
