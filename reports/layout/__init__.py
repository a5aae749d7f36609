"""One tree of a report, and what the writers of its three forms share: which sections there are, what each holds, and in which order.

`document` is the tree, `audit` and `changes` build it; the writers are the plugins of ``auditor_reports`` with `terminal_writer` and
`page`. Uses the rooms beside it.
"""
