"""What fits at their defaults find on 25 small tables, beside equal weights, a support vector machine and a random forest.

    python benchmarks/defaults.py run RAW.csv [--half choose] [--banks BANK,…] [--methods METHOD,…] [--splits 10] [--sets SET,…]
    python benchmarks/defaults.py summary RAW.csv [--half choose] [--reference BANK:METHOD]

`run` adds the scores that RAW.csv does not hold yet: accuracy for classes, R² for values. A split learns from half of the rows, at most 300
of them, and is scored on at most 300 others; classes keep their shares. Banks and methods are the keys of BANKS and METHODS below. Values
are learned at mean 0 and deviation 1. `summary` prints Markdown. Tables lie where MERCER_DATA_DIR says, default ../shared/data.

How defaults were chosen, written down before the first number (benchmarks/runs/2026-11-19-defaults says what came out): among banks and
settings whose `gmkl`, `lp` and `l1` are on no table of the choosing half significantly worse than `uniform` (two-sided corrected resampled
t-test, 5 %, each table by itself), neither than `uniform` with the same bank nor with the bank of today, the one with the largest
mean gain of `gmkl` over the tables; candidates within half a point of it count as equal, and the one with fewer kernels wins.
"""

import argparse
import csv
import gzip
import math
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from defaults_data import HALVES, SETS
from scipy import stats
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import mercer

#: Most rows to learn from, and most to be scored on.
ROWS = 300
LEVEL = 0.05

#: Candidates, in the kernel language. Columns are standardised, so that a width of 1 is a standard deviation; two points of a normal
#: column are 0.95 apart at the median.
BANKS = {
    "auto": "auto",
    "before": "rbf(auto), poly(1..3) on all, each",
    "all": "rbf(auto), poly(1..3) on all",
    "linear-each": "rbf(auto), poly(1..3) on all; linear on each",
    "rbf-each": "rbf(auto), poly(1..3) on all; rbf(1) on each",
    "both-each": "rbf(auto), poly(1..3) on all; linear, rbf(1) on each",
    "narrow-each": "rbf(auto), poly(1..3) on all; rbf(0.5) on each",
    "wide-each": "rbf(auto), poly(1..3) on all; rbf(2) on each",
    "two-each": "rbf(auto), poly(1..3) on all; rbf(0.5|2) on each",
    "rbf-all": "rbf(auto) on all",
    "rbf-all-linear-each": "rbf(auto) on all; linear on each",
    "rbf-all-rbf-each": "rbf(auto) on all; rbf(1) on each",
}
#: Beyond so many columns `each` is left out of these banks, as in `auto`.
WIDEST = 100

#: Method -> (names of the classes without Classifier or Regressor, parameters). C = "n" is the number of rows.
METHODS = {
    "uniform": ("UniformMKL", {}),
    "gmkl": ("GMKL", {}),
    "lp": ("LpMKL", {}),
    "lp-p2": ("LpMKL", {"p": 2.0}),
    "l1": ("LpMKL", {"p": 1.0}),
    "smkl": ("SMKL", {"normalize": "trace", "C": "n"}),
    "smkl-auto-C": ("SMKL", {"normalize": "trace", "C": "auto"}),
    "uniform-auto-C": ("UniformMKL", {"C": "auto"}),
    "gmkl-auto-C": ("GMKL", {"C": "auto"}),
    "uniform-C10": ("UniformMKL", {"C": 10.0}),
}
METHODS |= {f"gmkl-v{v}": ("GMKL", {"v": v}) for v in (0.0, 0.1, 0.3, 0.7, 0.9)}
METHODS |= {f"gmkl-C{C}": ("GMKL", {"C": C}) for C in (0.1, 0.3, 3.0, 10.0)}
METHODS |= {f"gmkl-v0.1-C{C}": ("GMKL", {"v": 0.1, "C": C}) for C in (0.1, 0.3, 3.0, 10.0)}
METHODS |= {f"lp-p{p}": ("LpMKL", {"p": p}) for p in (1.1, 1.2, 1.33, 1.5)}
#: Methods of scikit-learn, which have no bank.
OTHERS = {"svm": (SVC, SVR), "forest": (RandomForestClassifier, RandomForestRegressor)}

FIELDS = ["set", "split", "bank", "method", "train", "test", "kernels", "score", "seconds", "status"]


def splits(kind, X, y, count):
    """(train, test) row numbers, the same for every candidate."""
    n = len(y)
    learn = min(n // 2, ROWS)
    for seed in range(count):
        stratify = y if kind == "class" else None
        yield train_test_split(
            np.arange(n), train_size=learn, test_size=min(n - learn, ROWS), random_state=seed, stratify=stratify
        )


def candidate(kind, bank, method, shape):
    """The estimator, and whether it is one of ours."""
    values = kind == "value"
    if method in OTHERS:
        kernel = method == "svm"
        inner = OTHERS[method][values](**({} if kernel else {"random_state": 0}))
        model = make_pipeline(StandardScaler(), inner) if kernel else inner
    else:
        name, parameters = METHODS[method]
        parameters = dict(parameters)
        if parameters.get("C") == "n":
            parameters["C"] = float(shape[0])
        text = BANKS[bank]
        if bank not in ("auto", "all") and shape[1] > WIDEST:
            text = text.partition(";")[0].replace(", each", "")
        kind_name = "Regressor" if values else "Classifier"
        model = getattr(mercer, name + kind_name)(text, n_jobs=1, **parameters)
    return TransformedTargetRegressor(model, transformer=StandardScaler()) if values else model


def one(kind, X, y, train, test, bank, method):
    """A fit and its score, with what it cost."""
    model = candidate(kind, bank, method, (len(train), X.shape[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        model.fit(X[train], y[train])
        seconds = time.process_time() - began
        score = model.score(X[test], y[test])
    inner = getattr(model, "regressor_", model)
    return {
        "train": len(train),
        "test": len(test),
        "kernels": len(getattr(inner, "kernel_names_", [])),
        "score": f"{score:.6f}",
        "seconds": f"{seconds:.4f}",
        "status": getattr(inner, "status_", ""),
    }


def read(path):
    """What a file of scores holds."""
    if not Path(path).exists():
        return []
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def run(args):
    """Adds the scores that are missing."""
    done = {(r["set"], int(r["split"]), r["bank"], r["method"]) for r in read(args.raw)}
    new = not Path(args.raw).exists()
    wanted = [(bank, m) for m in args.methods for bank in ([""] if m in OTHERS else args.banks)]
    with open(args.raw, "a", newline="") as file:
        out = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if new:
            out.writeheader()
        for name in chosen_sets(args):
            load, kind = SETS[name]
            X, y = load()
            for at, (train, test) in enumerate(splits(kind, X, y, args.splits)):
                for bank, method in wanted:
                    if (name, at, bank, method) not in done:
                        row = one(kind, X, y, train, test, bank, method)
                        out.writerow({"set": name, "split": at, "bank": bank, "method": method} | row)
            file.flush()
            print(f"{name} done", file=sys.stderr)


def chosen_sets(args):
    """Names of the tables asked for, in order."""
    half = list(SETS) if args.half == "all" else HALVES[args.half]
    return [name for name in half if not args.sets or name in args.sets]


def corrected_t_test(differences, train, test):
    """Two-sided p of the corrected resampled t-test [Nadeau2003]: splits share rows, so the variance counts test / train more."""
    k, spread = len(differences), np.var(differences, ddof=1)
    if spread == 0.0:
        return 1.0 if np.mean(differences) == 0.0 else 2.0 ** (1 - k)
    t = np.mean(differences) / math.sqrt(spread * (1 / k + test / train))
    return 2 * stats.t.sf(abs(t), k - 1)


class Scores:
    """Scores by table and candidate, each over the same splits."""

    def __init__(self, rows):
        self.rows = {}
        for r in rows:
            self.rows.setdefault((r["set"], label(r)), {})[int(r["split"])] = r

    def candidates(self):
        """Labels in the order of the file."""
        return list(dict.fromkeys(name for _, name in self.rows))

    def numbers(self, name, candidate, field="score"):
        """One number per split."""
        return np.array([float(r[field]) for _, r in sorted(self.rows[name, candidate].items())])

    def against(self, name, candidate, reference):
        """Mean difference and its p."""
        common = sorted(self.rows[name, candidate].keys() & self.rows[name, reference].keys())
        first = self.rows[name, candidate][common[0]]
        d = [float(self.rows[name, candidate][k]["score"]) - float(self.rows[name, reference][k]["score"]) for k in common]
        return float(np.mean(d)), corrected_t_test(d, int(first["train"]), int(first["test"]))


def label(row):
    """Bank and method, as the tables name them."""
    return f"{row['bank']}:{row['method']}" if row["bank"] else row["method"]


def own_reference(candidate):
    """Equal weights with the candidate's bank."""
    return f"{candidate.partition(':')[0]}:uniform" if ":" in candidate else None


def summary(args):
    """Two tables: what became of every candidate, and the mean scores by table."""
    scores = Scores(read(args.raw))
    names = [name for name in chosen_sets(args) if any(key[0] == name for key in scores.rows)]
    candidates = [c for c in scores.candidates() if all((name, c) in scores.rows for name in names)]
    print(f"Mean difference from `{args.reference}` in points, and tables where a candidate is significantly worse or better than it,")
    print("and than `uniform` with its own bank.\n")
    print("| candidate | classes | values | all | least | worse | better | worse than own | better | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for c in candidates:
        print(row_of(scores, names, c, args.reference))
    print("\nMean scores (accuracy, or R² for values).\n")
    print(f"| table | {' | '.join(candidates)} |")
    print("|---" * (len(candidates) + 1) + "|")
    for name in names:
        cells = [f"{scores.numbers(name, c).mean():.3f}{mark(scores, name, c)}" for c in candidates]
        print(f"| {name} | {' | '.join(cells)} |")
    print("\n↓, ↑: significantly worse, better than `uniform` with the same bank.")


def mark(scores, name, candidate):
    """An arrow where the difference from equal weights is significant."""
    own = own_reference(candidate)
    if (name, own) not in scores.rows:
        return ""
    difference, p = scores.against(name, candidate, own)
    return ("↓" if difference < 0 else "↑") if p < LEVEL else ""


def row_of(scores, names, candidate, reference):
    """A line of the first table."""
    results = {name: scores.against(name, candidate, reference) for name in names}
    own = own_reference(candidate)
    known = all((name, own) in scores.rows for name in names)
    beside = {name: scores.against(name, candidate, own) for name in names} if known else {}

    def mean(kind):
        found = [100 * d for name, (d, _) in results.items() if kind in ("all", SETS[name][1])]
        return f"{np.mean(found):+.2f}" if found else "–"

    def significant(found, sign):
        return ", ".join(name for name, (d, p) in found.items() if p < LEVEL and d * sign > 0) or "–"

    least = min(results, key=lambda name: results[name][0])
    seconds = sum(scores.numbers(name, candidate, "seconds").mean() for name in names)
    cells = [
        f"`{candidate}`",
        *(mean(kind) for kind in ("class", "value", "all")),
        f"{100 * results[least][0]:+.1f} {least}",
        *(significant(results, sign) for sign in (-1, 1)),
        *(significant(beside, sign) for sign in (-1, 1)),
        f"{seconds:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "summary"])
    parser.add_argument("raw")
    parser.add_argument("--half", choices=[*HALVES, "all"], default="all")
    parser.add_argument("--sets", type=lambda text: text.split(","), default=[])
    parser.add_argument("--banks", type=lambda text: text.split(","), default=["auto"])
    parser.add_argument("--methods", type=lambda text: text.split(","), default=["uniform", "gmkl", "lp", "l1", *OTHERS])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--reference", default="before:uniform")
    args = parser.parse_args()
    run(args) if args.what == "run" else summary(args)


if __name__ == "__main__":
    main()
