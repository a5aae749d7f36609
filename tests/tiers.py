"""Pairs of parameters."""


def each_once(first, second):
    """Pairs that hold each value of the longer list once."""
    a, b = list(first), list(second)
    return [(a[k % len(a)], b[k % len(b)]) for k in range(max(len(a), len(b)))]
