"""The perturbation schemes that come with the workbench, one idea a file: how copies are drawn, and the law they follow.

A plugin package: each module registers its scheme, but for ``draw``, which makes the copies of any. ``base``
is what a scheme is; ``increments`` draws noise that is a process with independent increments; ``replacement``
and ``generalisation`` are the mechanics of the categorical ones and of k-anonymity. Uses ``auditor.data`` and
what lies below it; how a release is attacked is not known here: see ``auditor.adversary``.
"""
