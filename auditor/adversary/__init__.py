"""What an attacker holds and knows, what an attack is, and the checks on what it hands back.

Uses ``auditor.schemes`` for laws and what lies below it; never sees an original. The attacks themselves are
the package ``auditor_attacks``; what they are measured by is ``auditor.audit``.
"""
