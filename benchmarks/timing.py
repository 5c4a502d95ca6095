"""Times `mercer fit` on Toy 1 of the GMKL paper, for growing numbers of rows: a first feeling, not a benchmark.

usage: python benchmarks/timing.py PATH/TO/mercer [REPEATS]

Needs no package. The bank is `paper` (273 kernels on 20 columns), unit trace, C = n. Each time is the smallest of the
repeats and counts the fit alone: building kernels, learning weights, assembling the model. Times mean nothing without
the objective and the gap beside them.
"""

import csv
import json
import math
import os
import platform
import random
import subprocess
import sys
import tempfile

ROWS = (100, 200, 400, 800)
METHODS = (("uniform", []), ("gmkl", ["--v", "0.5"]))


def toy1(n, rng):
    """Rows of 20 uniform columns, of which three decide the class."""
    for _ in range(n):
        x = [rng.random() for _ in range(20)]
        signal = sum(-2 * math.sin(2 * a) + 1 - math.cos(2) for a in x[:3])
        yield [*x, "up" if signal + rng.gauss(0, 1) > 0 else "down"]


def fit(program, table, model, method, options, c):
    command = [program, "fit", table, "--target", "class", "--method", method, *options, "--kernels", "paper"]
    command += ["--normalize", "trace", "-C", str(c), "-o", model, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main(program, repeats=3):
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    print(f"{version}; {platform.system()} {platform.machine()}, {os.cpu_count()} cores; smallest of {repeats} fits")
    head = f"{'rows':>5}  {'method':<8} {'seconds':>8}  {'kernels':>10}  {'objective':>12}  {'gap':>8}  status"
    print(f"{head}\n{'-' * len(head)}")
    with tempfile.TemporaryDirectory() as folder:
        table, model = os.path.join(folder, "toy1.csv"), os.path.join(folder, "m.mercer")
        for n in ROWS:
            with open(table, "w", newline="") as file:
                out = csv.writer(file)
                out.writerow([*(f"x{j}" for j in range(1, 21)), "class"])
                out.writerows(toy1(n, random.Random(n)))
            for method, options in METHODS:
                fits = [fit(program, table, model, method, options, n) for _ in range(repeats)]
                best = min(fits, key=lambda f: f["seconds"])
                kernels = f"{best['kernels']['selected']} of {best['kernels']['total']}"
                objective = best["machines"][0]["certificate"]["primal"]
                print(
                    f"{n:>5}  {method:<8} {best['seconds']:>8.3f}  {kernels:>10}  {objective:>12.4f}  "
                    f"{best['gap']:>8.1e}  {best['status']}",
                    flush=True,
                )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:3]))
