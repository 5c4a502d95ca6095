"""The program and the package: same file, same fit, same predictions, bit for bit."""

import csv
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import BANK, METHODS
from numpy.testing import assert_array_equal

import mercer
from mercer._io import estimators

ROOT = Path(__file__).parents[2]
TARGETS = [Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / kind / "mercer" for kind in ("release", "debug")]
PROGRAM = os.environ.get("MERCER_PROGRAM") or next((str(p) for p in TARGETS if p.exists()), shutil.which("mercer"))

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="the program is not built: cargo build --release")

COLUMNS = ["a", "b b", "c"]


def run(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(path, X, y):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow([*COLUMNS[: X.shape[1]], "target"])
        out.writerows([*map(repr, row), label] for row, label in zip(X.tolist(), y.tolist(), strict=True))


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        (kind, method)
        for method in METHODS
        for kind in ("binary", "ternary", "regression")
        if kind != "regression" or "regression" in estimators()[method]
    ],
)
def test_program_and_package_agree(kind, method, tmp_path, request):
    pd = pytest.importorskip("pandas")
    X, y = request.getfixturevalue(kind)
    if kind != "regression":
        y = np.array(["no", "perhaps", "yes"])[y]
    table, file = tmp_path / "table.csv", tmp_path / "m.mercer"
    write(table, X, y)
    run("fit", table, "--target", "target", "--method", method, "--kernels", BANK, "-C", 2, "-o", file, "--quiet")
    loaded = mercer.load(file)
    frame = pd.DataFrame(X, columns=COLUMNS[: X.shape[1]])
    fitted = type(loaded)(BANK, C=2).fit(frame, y)
    for name in ("kernel_weights_", "kernel_names_", "support_", "dual_coef_", "intercept_", "duality_gap_"):
        assert_array_equal(getattr(fitted, name), getattr(loaded, name), err_msg=name)
    assert list(loaded.feature_names_in_) == list(frame.columns)
    assert_array_equal(loaded.predict(frame), fitted.predict(frame))
    # And the other way: the program reads what the package wrote.
    fitted.save(file)
    told = json.loads(run("predict", file, table, "--decision", "--json"))
    assert_array_equal(told["predictions"], fitted.predict(frame))
    output = fitted.decision_function if kind != "regression" else fitted.predict
    assert_array_equal(np.squeeze(told["decision"]), output(frame))


def test_options_of_classes_agree(tmp_path, ternary):
    X, y = ternary
    table, file = tmp_path / "table.csv", tmp_path / "m.mercer"
    write(table, X, np.array(["no", "perhaps", "yes"])[y])
    options = "--method l1 --loss logistic --multi-class ovo --shared-weights --no-intercept --quiet"
    run("fit", table, "--target", "target", "--kernels", BANK, *options.split(), "-o", file)
    loaded = mercer.load(file)
    asked = {"p": 1.0, "loss": "logistic", "multi_class": "ovo", "shared_weights": True, "fit_intercept": False}
    assert asked.items() <= loaded.get_params().items()
    told = json.loads(run("predict", file, table, "--probabilities", "--json"))
    assert_array_equal(told["probabilities"], loaded.predict_proba(X))
