import re

import numpy as np

import auditor
from auditor.data import table as tables
from auditor.data.columns import scan as streamed
from tests.loading import load_table

SMALLER = 16
FORMS = ["groups.parquet", "one-group.parquet", "table.csv", "parts-parquet/", "parts-csv/"]


def write(frame, folder, form):
    path = folder / form
    if form == "groups.parquet":
        frame.to_parquet(path, row_group_size=7_001)
    elif form == "one-group.parquet":
        frame.to_parquet(path)
    elif form == "table.csv":
        frame.to_csv(path, index=False)
    else:
        path.mkdir()
        for k, start in enumerate(range(0, len(frame), 40_000)):
            part = frame.iloc[start : start + 40_000]
            if form == "parts-csv/":
                part.to_csv(path / f"part-{k:03}.csv", index=False)
            else:
                part[frame.columns[::-1]].to_parquet(path / f"part-{k:03}.parquet")
        (path / "_SUCCESS").touch()
    return path


def load(source, **request):
    return load_table(str(source), rng=np.random.default_rng(0), **request)


TREES = re.compile(r"boosted-tree attack beyond [\d.e-]+%")


def figures(result):
    return (
        result.measurements, result.distributions,
        [record.model_dump() | {"why": TREES.sub("", record.why)} for record in result.expectations],
        [summary.model_dump() for summary in result.data],
    )  # fmt: skip


def in_memory(monkeypatch, document):
    tables._remembered.clear()
    monkeypatch.setattr(streamed, "HELD_BYTES", 2**40)
    result = auditor.run(document)
    tables._remembered.clear()
    monkeypatch.setattr(streamed, "HELD_BYTES", 0)
    return result
