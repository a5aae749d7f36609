"""Built-in perturbation schemes, one idea per file.

A plugin package: each module registers its schemes. Only ``draw`` registers none: it draws the
copies of any scheme. ``base`` holds the base classes, and noise with independent increments.
``replacement`` and ``generalisation`` serve the categorical schemes and k-anonymity. Uses
``auditor.data`` and lower packages; knows no attack.
"""
