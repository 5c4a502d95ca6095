"""The table of a got.csv beside its expected.csv: python reproduce/summary.py clmkl | glmkl | vcmkl.

Means ± standard deviations over splits, their number in brackets; a star where ours differs from the paper's by more
than two standard errors (ours, and the paper's where it gives a deviation, over the number of its splits).
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

#: Row, column, value, digits and the paper's splits.
LAYOUT = {
    "clmkl": ("method", "n", "auc", 1, 50),
    "glmkl": ("set", "method", "accuracy", 1, 10),
    "vcmkl": ("set", "method", "value", 3, None),
}


def read(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def ours(values, digits, paper, splits):
    """A cell: what was got, starred if far from what was expected."""
    if not values:
        return "–"
    mean, deviation = np.mean(values), np.std(values, ddof=1) if len(values) > 1 else 0.0
    text = f"{mean:.{digits}f}±{deviation:.{digits}f} ({len(values)})"
    number, _, spread = paper.partition("±")
    if not number or len(values) < 2:
        return text
    error = np.hypot(deviation / np.sqrt(len(values)), float(spread or 0) / np.sqrt(splits or 1))
    return text + (" *" if abs(mean - float(number)) > 2 * error else "")


def main():
    name = sys.argv[1]
    row, column, value, digits, splits = LAYOUT[name]
    folder = Path(__file__).parent / name
    cells, paper = defaultdict(list), {}
    rows, expected = read(folder / "got.csv"), read(folder / "expected.csv")
    if name == "vcmkl":
        of = lambda r: (f"{r['set']} {r['setting']}", r["method"])  # noqa: E731
        kept = [r for r in rows if r["part"] == "table2" and r["measure"] == "cost"]
        paper = {of(r): r["value"] for r in expected if r["part"] == "table2"}
        for r in kept:
            cells[of(r)].append(float(r[value]))
        lines = list(dict.fromkeys(of(r)[0] for r in kept))
        columns = list(dict.fromkeys(r["method"] for r in kept))
    else:
        columns = list(expected[0])[1:]
        lines = [r[row] for r in expected]
        paper = {(r[row], c): r[c] for r in expected for c in columns}
        for r in rows:
            cells[r[row], r[column]].append(float(r[value]))
    print("| " + " | ".join([row, *columns]) + " |")
    print("|" + "---|" * (len(columns) + 1))
    for line in lines:
        print(f"| {line}, paper | " + " | ".join(paper.get((line, c), "–") for c in columns) + " |")
        got = [ours(cells[line, c], digits, paper.get((line, c), ""), splits) for c in columns]
        print(f"| {line}, here | " + " | ".join(got) + " |")


if __name__ == "__main__":
    main()
