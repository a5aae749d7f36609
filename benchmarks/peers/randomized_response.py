"""Audit of ε of k-ary randomized response by multi-freq-ldpy, as LDP-Auditor does it; runs in an environment of the peer's own.

Reads numbers of trials from standard input, a line each, and answers with (seconds, the log-ratio
of both chances) as JSON. One call of ``GRR_Client`` a trial and a count of the target output under
either input is LDP-Auditor's loop (Arcolezi and Gambs, PETS 2024), which its authors run on this
package; Clopper and Pearson's bounds are left out, which favours the peer."""

import json
import sys
import time
from math import log

from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client


def count(trials: int, value: int, k: int, epsilon: float, target: int) -> int:
    """Return how often the target comes out."""
    hits = 0
    for _ in range(trials):
        hits += GRR_Client(value, k, epsilon) == target
    return hits


def main() -> None:
    k, epsilon = int(sys.argv[1]), float(sys.argv[2])
    count(10, 0, k, epsilon, 0)  # compiles
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        trials = int(line)
        start = time.process_time()
        told, other = count(trials, 0, k, epsilon, 0), count(trials, k - 1, k, epsilon, 0)
        print(
            json.dumps([time.process_time() - start, log(max(told, 1) / max(other, 1))]), flush=True
        )


if __name__ == "__main__":
    main()
