"""Records figures of Google's dp-accounting for ``test_guarantees.py``.

Run in an environment of its own, as its bounds on attrs need not agree with those of the tests::

    python -m venv /tmp/accountant && /tmp/accountant/bin/pip install dp-accounting==0.6.0
    /tmp/accountant/bin/python tests/schemes/record_accountant.py > tests/schemes/accountant.json
"""

import json
import sys

from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from dp_accounting.pld.privacy_loss_mechanism import (
    DiscreteLaplacePrivacyLoss,
    GaussianPrivacyLoss,
    LaplacePrivacyLoss,
)

MUS = (0.05, 0.4, 1.0, 2.5, 8.0)
EPSILONS = (0.0, 0.1, 1.0, 4.0)
DELTAS = (1e-10, 1e-5, 1e-2)
SCALES = (0.3, 1.0, 4.0)


recorded = {
    "gaussian_delta": [
        [mu, e, GaussianPrivacyLoss(1.0 / mu).get_delta_for_epsilon(e)]
        for mu in MUS
        for e in EPSILONS
    ],
    "gaussian_epsilon": [[mu, d, get_epsilon_gaussian(1.0 / mu, d)] for mu in MUS for d in DELTAS],
    "laplace_delta": [
        [b, e, LaplacePrivacyLoss(b, sensitivity=2.0).get_delta_for_epsilon(e)]
        for b in SCALES
        for e in EPSILONS
    ],
    "geometric_delta": [
        [a, e, DiscreteLaplacePrivacyLoss(a, sensitivity=3).get_delta_for_epsilon(e)]
        for a in SCALES
        for e in EPSILONS
    ],
}
rows = {
    name: ",\n".join(f"  {json.dumps(row)}" for row in found) for name, found in recorded.items()
}
sys.stdout.write(
    "{\n" + ",\n".join(f' "{name}": [\n{text}\n ]' for name, text in rows.items()) + "\n}\n"
)
