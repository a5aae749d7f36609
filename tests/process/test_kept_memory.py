from __future__ import annotations

import platform

import pytest

from tests.programs import python

FAULTS = """
import resource
import numpy as np
from auditor.process.memory import keep_freed_memory
{keep}
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(8):
        first, second, third = np.ones(2**20), np.ones(2**20), np.ones(2**20)  # of 8 MiB, which are freed together
        del first, second, third
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults() * resource.getpagesize() // 2**20)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="other libraries keep memory by other rules"
)
def test_memory_that_was_freed_is_used_again():
    kept, given_back = (
        int(python("-c", FAULTS.format(keep=keep)).stdout) for keep in ("keep_freed_memory()", "")
    )
    assert kept <= 1
    assert given_back >= 24
