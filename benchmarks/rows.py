"""Commands of users compared with a competent peer and a floor.

A row has the command as a user types it, a competent script with numpy, pyarrow or scikit-learn for
that task, and a floor of indispensable work. Each runs in a new process. Processor seconds and peak
memory include the interpreter and its imports.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

NUMPY = "import numpy as np; rng = np.random.default_rng(0);"
LIBRARIES = (
    "import scipy.special, scipy.fft, pandas, pyarrow.parquet, pydantic, yaml, psutil, jinja2,"
    "concurrent.futures.process, rich_click, rich.console, rich.table;"
)
"""Libraries of every run: scenarios, law tests, tables, Parquet files, workers and pages. Writing
a Parquet file imports pandas, too."""
RELEASES = 10
"""A release, and nine more for the error bars of attacks on rows."""


class Row(NamedTuple):
    """One row: commands, peer and floor.

    ``bar`` is the largest ratio to the peer, or the most seconds. Seconds are the clock's with
    ``wall``, else the processor's.
    """

    what: str
    commands: Sequence[Sequence[str]]
    peer: str
    floor: str
    bar: float
    seconds: bool = False
    wall: bool = False


def normals(count: float) -> str:
    """Return a script that draws so many normals, in blocks."""
    return f"{NUMPY} [rng.standard_normal(2**18) for _ in range(int({count}) // 2**18 + 1)]"


def scenario(folder: Path, name: str, **sections: Any) -> str:
    """Write a scenario; return its path."""
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps({"seed": 1, **sections}))
    return str(path)


def gaussian(rows: int, width: int) -> dict[str, Any]:
    """Return the section ``data`` of correlated normal attributes."""
    spectrum = {"mean-variance": 1, "count": min(3, width - 1), "small": 0.3, "attributes": width}
    return {"source": "gaussian", "rows": rows, "spectrum": spectrum}


def moment_script(n: int, levels: Sequence[float], bars: bool) -> str:
    """Return a script: linear errors of every coalition from moments, batched by size."""
    return f"""{NUMPY}
from itertools import combinations
n, N, M, levels = {n}, 2, {len(levels)}, np.array({list(levels)})
X = rng.standard_normal((n, N)) @ np.array([[1.0, 0.5], [0.0, 1.0]]); K = X.T @ X / n
root = np.linalg.cholesky(K)
for draw in range({1 + bars}):
    v = np.hstack([X, *(X + np.sqrt(l) * rng.standard_normal((n, N)) @ root.T for l in levels)])
    P, K_Y = v.T @ v / n, np.kron(1.0 + np.diag(levels), K)
    for size in range(1, M + 1):
        held = np.array(list(combinations(range(M), size)))
        at = (held[:, :, None] * N + np.arange(N)).reshape(len(held), -1)
        W = np.linalg.solve(K_Y[at[:, :, None], at[:, None, :]], np.tile(K, (size, 1))).mT
        R = np.concatenate([np.broadcast_to(np.eye(N), (len(held), N, N)), -W], axis=2)
        at = np.concatenate([np.broadcast_to(np.arange(N), (len(held), N)), N + at], axis=1)
        errors = np.einsum("cid,cde,cie->ci", R, P[at[:, :, None], at[:, None, :]], R)
"""


TABLES = f"""{NUMPY} import sys, pyarrow as pa, pyarrow.csv as csv, pyarrow.parquet as pq
for name, factors, width in (("big", 4, 4), ("wide", 3, 12)):
    X = rng.standard_normal((2_000_000, factors)) @ rng.standard_normal((factors, width))
    X += 0.5 * rng.standard_normal(X.shape)
    table = pa.table({{f"x{{k}}": x for k, x in enumerate(X.T)}})
    pq.write_table(table, f"{{sys.argv[1]}}/{{name}}.parquet", row_group_size=2**17)
csv.write_csv(table, f"{{sys.argv[1]}}/wide.csv")
"""
CODED = f"""{NUMPY} import sys, pyarrow as pa, pyarrow.csv as csv, pyarrow.parquet as pq
sizes = dict(zip("abcde", (8, 8, 8, 3, 3)))
table = pa.table({{name: rng.geometric(0.4, 50_000) % size for name, size in sizes.items()}})
pq.write_table(table, f"{{sys.argv[1]}}/coded.parquet")
X = rng.standard_normal((20_000, 4)).cumsum(axis=1)
mixed = {{f"x{{k}}": x for k, x in enumerate(X.T)}}
mixed |= {{f"c{{k}}": rng.choice(list("uvwxyz")[: 2 + k], 20_000) for k in range(3)}}
csv.write_csv(pa.table(mixed), f"{{sys.argv[1]}}/mixed.csv")
"""
"""Five columns of 4,608 values together, and four numbers with three categories."""


def posterior(n: int, s: int) -> str:
    """Return a script: exact posterior of three copies of a categorical column."""
    return f"""{NUMPY}
n, s, p = {n}, {s}, 0.5
prior = rng.dirichlet(np.ones(s)); x = rng.choice(s, n, p=prior)
for copy in range(3):
    y = np.where(rng.random(n) < p, x, rng.integers(0, s, n))
    right = prior[y] * (p + (1 - p) / s); rest = (1 - prior[y]) * (1 - p) / s
    (np.where(x == y, right, prior[x] * (1 - p) / s) / (right + rest)).mean()
"""


WRITE = """import numpy as np, pyarrow as pa, pyarrow.parquet as pq, pyarrow.csv as csv, sys
table, rng = pq.read_table(sys.argv[1]), np.random.default_rng(0)
X = np.column_stack([column.to_numpy() for column in table.columns])
root = np.linalg.cholesky(np.cov(X.T)); noise = 0
for k, step in enumerate(np.sqrt([0.25, 0.25, 0.5])):
    noise = noise + step * rng.standard_normal(X.shape) @ root.T
    Y = pa.table(dict(zip(table.column_names, (X + noise).T)))
    %s
"""
PARQUET, CSV = (
    WRITE % f"{written}(Y, f'{{sys.argv[1]}}.{{k}}')"
    for written in ("pq.write_table", "csv.write_csv")
)
ICA = f"""{NUMPY}
from sklearn.decomposition import FastICA
X = rng.laplace(size=(20_000, 6)) @ rng.standard_normal((6, 6))
[FastICA(whiten="unit-variance", random_state=k).fit_transform(X) for k in range({RELEASES})]
"""


def rows(folder: Path) -> list[Row]:
    """Return every row, its files written to a folder."""
    # by other processes: a program's peak memory includes the peak of its parent
    for tables in (TABLES, CODED):
        subprocess.run([sys.executable, "-c", tables, folder], check=True)
    big, wide, out = str(folder / "big.parquet"), str(folder / "wide.parquet"), str(folder / "out")
    drafted, mixed = str(folder / "drafted.yaml"), str(folder / "mixed.csv")
    ten = [0.25 + k / 12 for k in range(10)]

    def run(name: str, **sections: Any) -> list[list[str]]:
        return [["run", scenario(folder, name, **sections), "-o", out, "-q", "-j", "1"]]

    def audit(scheme: str, levels: Sequence[float], **more: Any) -> dict[str, Any]:
        return {
            "schemes": [{"name": scheme, "levels": list(levels)}],
            "coalitions": "subsets",
            "attacks": "all",
            **more,
        }

    three = [0.5, 1.0, 2.0]
    coded = {"source": "census-like", "rows": 20_000, "bin": {"income": {"quantile": 8}}}
    five = {"source": str(folder / "coded.parquet"), "categorical": list("abcde")}
    perturb = ["--scheme", "corner-wave", "--levels", "0.25,0.5,1", "--seed", "1", "--output"]
    expect = [{"no-collusion-gain": {}}, {"exposure": {"unknown": {"at-least": 0.1}}}]
    quickstart = ["run", "quickstart", "-o", out, "-q", "-j"]
    binned = run("coded", data=coded, **audit("uniform-multilevel", [0.5, 0.3, 0.2]))
    asked = run("asked", data=gaussian(20_000, 8), expect=expect, **audit("corner-wave", three))
    text_file = str(folder / "wide.csv")
    million, text = (
        run(name, data={"source": file}, **audit("corner-wave", three[:2], coalitions="all"))
        for name, file in (("million", wide), ("text", text_file))
    )
    read = f"import pyarrow.parquet as pq; pq.read_table({wide!r})"
    trees = "from sklearn.ensemble import HistGradientBoostingRegressor as H; import numpy as np;"
    trees += "X = np.random.default_rng(0).normal(size=(20_000, 24));"
    trees += "[H(max_iter=20).fit(X[:10_000], X[:10_000, 0]).predict(X) for _ in range(32)]"
    return [
        Row("`auditor --help`", [["--help"]], "import click, rich", "pass", 3.0),
        Row("`auditor check quickstart`", [["check", "quickstart"]],
            "import numpy, scipy.special, pandas", "import numpy", 3.0),
        Row("`auditor run quickstart`", [[*quickstart, "1"]], normals(RELEASES * 3 * 1.16e6),
            normals(3 * 1.16e6), 3.0, seconds=True),
        *(
            Row(f"{name}, two workers, beside one, by the clock", [[*audited, "2"]],
                f"from auditor.cli import main; import sys; sys.argv[1:] = {[*audited, '1']}; main()",
                "import auditor.cli", 1.0, wall=True)
            for name, audited in (
                ("`auditor run quickstart`", quickstart),
                ("categories in bins, 20,000 × 1 × 3", binned[0][:-1]),
                ("all attacks and coalitions, both expectations, Gaussian, 20,000 × 8 × 3", asked[0][:-1]),
            )
        ),
        Row("`auditor run quickstart --budget 5s`", [[*quickstart, "1", "--budget", "5s"]],
            normals(3 * 1.16e6), "import numpy", 5.0, seconds=True),
        Row("`auditor new` and `run`, 20,000 × 7 with three categories",
            [["new", drafted, "--data", mixed, "--force"], ["run", drafted, "-o", out, "-q", "-j", "1"]],
            normals(2e7), "import pandas, scipy.special, sklearn.ensemble", 15.0, seconds=True),
        Row("1,023 coalitions of 100,000 × 2 × 10, `llse`",
            run("coalitions", data=gaussian(100_000, 2), **audit("correlated", ten, attacks=["llse"])),
            moment_script(100_000, ten, bars=True), LIBRARIES + normals(4e6), 1.2),
        Row("all attacks, Gaussian, 100,000 × 8 × 3",
            run("gaussian", data=gaussian(100_000, 8), **audit("corner-wave", three)),
            normals(2.4e7), normals(2.4e6), 60.0),
        Row("all attacks, Laplace, 100,000 × 8 × 3",
            run("laplace", data=gaussian(100_000, 8), **audit("laplace-multilevel", three)),
            normals(2.4e7), normals(2.4e6), 12.0, seconds=True),
        Row("all attacks and coalitions, both expectations, Gaussian, 20,000 × 8 × 3", asked,
            normals(2e7), trees, 60.0),
        Row("all attacks and coalitions, both expectations, Laplace, 20,000 × 8 × 3",
            run("both", data=gaussian(20_000, 8), expect=expect, **audit("laplace-multilevel", three)),
            normals(2e7), trees, 100.0),
        Row("all attacks, 20,000 × 60 × 2",
            run("sixty", data=gaussian(20_000, 60), **audit("corner-wave", three[:2], coalitions="all")),
            normals(2.4e7), normals(2.4e6), 10.0, seconds=True),
        Row("all attacks, 2,000,000 × 12 × 2 in Parquet",
            million, normals(RELEASES * 4.8e7), f"{read}; {normals(4.8e7)}", 60.0, seconds=True),
        Row("all attacks, 2,000,000 × 12 × 2 in CSV, beside Parquet", text,
            f"from auditor.cli import main; import sys; sys.argv[1:] = {million[0]}; main()",
            f"import pyarrow.csv; pyarrow.csv.read_csv({text_file!r})", 1.5),
        Row("`auditor advise`, 2,000,000 × 12 in Parquet",
            [["advise", wide, "--copies", "3", "--unknown", "0.5", "-q"]],
            normals(4.8e7), read, 60.0, seconds=True),
        Row("five categorical columns (4,608 values), 50,000 × 3",
            run("five", data=five, **audit("uniform-multilevel", [0.5, 0.3, 0.2])),
            posterior(50_000, 4608), LIBRARIES, 1.0, seconds=True),
        Row("categories in bins, 20,000 × 1 × 3", binned, posterior(20_000, 8), LIBRARIES, 10.0),
        Row("`auditor perturb`, 2,000,000 × 4 × 3, Parquet to Parquet",
            [["perturb", big, *perturb, str(folder / "parquet")]], PARQUET, normals(2.4e7), 1.5),
        Row("`auditor perturb`, 2,000,000 × 4 × 3, Parquet to CSV",
            [["perturb", big, *perturb, str(folder / "csv"), "--format", "csv"]],
            CSV, PARQUET, 1.5),
        Row("`ica` against `rotation`, 20,000 × 6",
            run("ica", data=gaussian(20_000, 6), schemes=["rotation"], coalitions="all",
                attacks=["ica"], knowledge=["perfect"]),
            ICA, "import sklearn.decomposition", 3.0),
    ]  # fmt: skip
