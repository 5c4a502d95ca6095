"""Where the Huber loss should turn linear where nobody says: R² of `GMKLRegressor` on clean rows, learned from clean and dirty ones."""

import sys
import warnings

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.metrics import r2_score

from mercer import GMKLRegressor

SHARES = (0.1, 0.2, 0.3, 0.5, 1.0, 1.35)
BANK = "rbf(auto), poly(1..3) on all"
SETTINGS = {"tube": {}, "squared": {"loss": "squared"}} | {f"huber {share}": {"loss": "huber"} for share in SHARES}


def split(table, rng):
    """150 rows to learn from and the others."""
    if table == "diabetes":
        X, y = load_diabetes(return_X_y=True)
        order = rng.permutation(len(y))
        X, y = X[order], y[order]
    else:
        X, y = make_friedman1(500, noise=1.0, random_state=int(rng.integers(1e6)))
    return X[:150], y[:150], X[150:], y[150:]


def dirtied(y, how, rng):
    """The values to learn from, with errors whose size is measured in deviations of the clean ones."""
    deviation, y = y.std(), y.copy()
    if how == "5 % off by 10 deviations":
        y[::20] += 10 * deviation * rng.choice([-1, 1], size=len(y[::20]))
    elif how == "t₂ noise":
        y += 0.3 * deviation * rng.standard_t(2, size=len(y))
    return y


def main(repetitions=4):
    warnings.simplefilter("ignore")
    print("| table | values learned from |", " | ".join(SETTINGS), "|\n|" + "---|" * (len(SETTINGS) + 2))
    for table in ("friedman1", "diabetes"):
        for how in ("clean", "5 % off by 10 deviations", "t₂ noise"):
            scores = {name: [] for name in SETTINGS}
            for seed in range(repetitions):
                rng = np.random.default_rng(seed)
                X, y, new, truth = split(table, rng)
                y = dirtied(y, how, rng)
                for name, settings in SETTINGS.items():
                    epsilon = {"epsilon": float(name.split()[1]) * y.std()} if name.startswith("huber") else {}
                    model = GMKLRegressor(BANK, **settings, **epsilon).fit(X, y)
                    scores[name].append(r2_score(truth, model.predict(new)))
            print(f"| {table} | {how} |", " | ".join(f"{np.mean(s):.3f}" for s in scores.values()), "|")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
