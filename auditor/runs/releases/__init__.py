"""Releases that are out: the folder that holds one, and the line of copies that `extend` and `append` continue.

``lineage`` continues a release in memory, ``in_files`` a release in a folder. ``folder`` holds the lock, the manifest, and the order in
which files appear. Uses the rest of ``runs`` and every room below it; copies are drawn in ``runs.perturb`` and ``runs.drawn_copies``.
"""
