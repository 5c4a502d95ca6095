"""The table of a got.csv beside its expected.csv: python reproduce/summary.py clmkl | glmkl."""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

paper = sys.argv[1]
row, column, value = ("method", "n", "auc") if paper == "clmkl" else ("set", "method", "accuracy")
folder = Path(__file__).parent / paper
cells = defaultdict(list)
with open(folder / "got.csv", newline="") as f:
    for r in csv.DictReader(f):
        cells[r[row], r[column]].append(float(r[value]))
with open(folder / "expected.csv", newline="") as f:
    expected = list(csv.reader(f))
columns = expected[0][1:]
print("| " + " | ".join([row, *columns]) + " |")
print("|" + "---|" * (len(columns) + 1))
for name, *numbers in expected[1:]:
    print(f"| {name}, paper | " + " | ".join(numbers) + " |")
    ours = [cells[name, c] for c in columns]
    text = [f"{np.mean(v):.1f}±{np.std(v, ddof=1) if len(v) > 1 else 0:.1f} ({len(v)})" if v else "–" for v in ours]
    print(f"| {name}, here | " + " | ".join(text) + " |")
