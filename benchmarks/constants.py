"""What every number in a solver's `tuning!` block costs: benchmarks/constants.py [--out FOLDER] [--repeats 3] [NAME...].

Builds the program with the feature `sweep`, in which the environment can multiply one number at a time. Makes a panel of
fits that reach every solver, and for each number at most three of them again that read it, with the number times 1/100,
1/2, 2 and 100 (a share above one half goes half way to 1 instead). Records the processor seconds of the fits over those
with the number as it is, measured around them in the same minute; how far two halves of those lie apart, which is what a
ratio is known to; the largest ratio of a single fit; how far the objectives moved; and fits that end otherwise.

Writes raw.csv, a row per number and factor, and summary.md. Seconds are of one thread per fit; run on an idle machine.
Names that are given (`level` or `level.cuts_kept`) restrict the sweep.
"""

import argparse
import csv
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
PROGRAM = ROOT / "target/sweep/release/mercer"
FACTORS = (0.01, 0.5, 2.0, 100.0)
#: Seconds a fit may take before it counts as not finished.
LIMIT = 20.0
#: Fits that a number is tried on at most: those that read the fewest numbers, for in them it counts most.
MOST_FITS = 3
#: Fits shorter than this many seconds are not timed where there are longer ones: starting the program takes a hundredth.
SHORT = 0.04


def table(path, rows, columns, seed, regression=False, noise=0.3):
    """A table whose answer depends on the first third of its columns, not linearly."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, columns))
    some = x[:, : max(2, columns // 3)]
    f = np.sin(some).sum(axis=1) + 0.5 * some[:, 0] * some[:, 1] + noise * draw.normal(size=rows)
    with path.open("w", newline="") as out:
        write = csv.writer(out)
        write.writerow([f"x{j}" for j in range(columns)] + ["y"])
        for row, value in zip(x, f, strict=True):
            answer = repr(float(value)) if regression else ("a" if value > 0 else "b")
            write.writerow([repr(float(v)) for v in row] + [answer])


def panel(folder):
    """The fits by name: the arguments of `mercer fit`."""
    table(folder / "small.csv", 900, 12, 1)
    table(folder / "noisy.csv", 600, 6, 2, noise=1.0)
    table(folder / "values.csv", 800, 8, 3, regression=True)
    table(folder / "wide.csv", 200, 120, 4)
    table(folder / "long.csv", 1500, 5, 5)
    table(folder / "few.csv", 60, 3, 6, noise=1.0)
    table(folder / "rules.csv", 150, 4, 7, noise=0.6)
    table(folder / "tiny.csv", 24, 2, 8, noise=1.0)
    bank, rich = "rbf(0.5|1|2|4), poly(1..2) on all, each", "rbf(2^-2..2^3), poly(1..3) on all, each"
    fits = {
        "gmkl": ["small", "gmkl", rich, "-C", "10"],
        "gmkl noisy": ["noisy", "gmkl", rich, "-C", "100", "--v", "0.9", "--tol", "1e-5"],
        "gmkl dense": ["small", "gmkl", bank, "-C", "10", "--storage", "dense"],
        "gmkl single": ["small", "gmkl", bank, "-C", "10", "--storage", "dense-f32"],
        "gmkl alternating": ["small", "gmkl", bank, "--solver", "alternating", "--v", "0.2"],
        "gmkl interior": ["long", "gmkl", "rbf(1|2), poly(1..2) on all, each", "--solver", "interior", "-C", "10"],
        "gmkl nystrom": ["long", "gmkl", "rbf(1|2) on all", "--approx", "nystrom(60)"],
        "l1": ["small", "l1", rich, "-C", "10", "--tol", "1e-5"],
        "l1 wide": ["wide", "l1", rich, "-C", "10"],
        "l1 logistic": ["small", "l1", bank, "--loss", "logistic", "-C", "10"],
        "l1 silp": ["noisy", "l1", bank, "--solver", "silp"],
        "l1 gradient": ["noisy", "l1", bank, "--solver", "reduced_gradient"],
        "lp": ["small", "lp", bank, "--p", "1.5", "-C", "10"],
        "l2": ["small", "l2", bank, "-C", "100"],
        "l2 squared hinge": ["small", "l2", bank, "--loss", "squared_hinge"],
        "values": ["values", "gmkl", bank, "-C", "10"],
        "values l1": ["values", "l1", bank, "-C", "10", "--tol", "1e-5"],
        "values squared": ["values", "gmkl", bank, "--loss", "squared", "-C", "10"],
        "uniform": ["small", "uniform", rich, "-C", "1000"],
        "alignf": ["rules", "alignf", rich],
        "single": ["noisy", "single", "rbf(0.5|1|2) on all, each"],
        "smkl": ["small", "smkl", bank],
        "smkl mf": ["noisy", "smkl", bank, "--penalty", "mf(0.5)", "--tol", "1e-4"],
        "clmkl": ["small", "clmkl", bank, "--p", "1.5"],
        "clmkl net": ["small", "clmkl", "rbf(1|2) on all, each", "--v", "0.5"],
        "hlmkl": ["small", "hlmkl", bank],
        "lmkl": ["noisy", "lmkl", "rbf(1|2), linear on all", "--n-init", "2"],
        "glmkl": ["rules", "glmkl", bank],
        "gsmkl": ["rules", "gsmkl", bank],
        "vcmkl": ["rules", "vcmkl", "rbf(2) on all", "--rules", "3"],
        "vcmkl nu": ["rules", "vcmkl", "rbf(2) on all", "--rules", "2", "--nu", "0.1"],
        "vcmkl am": ["noisy", "vcmkl", "rbf(2) on all", "--solver", "am"],
        "vcmkl sgd": ["noisy", "vcmkl", "rbf(2) on all", "--solver", "sgd"],
        "vcmkl pddp": ["few", "vcmkl", "rbf(2) on all", "--rules", "2", "--solver", "pddp"],
        "vcmkl exact": ["tiny", "vcmkl", "rbf(2) on all", "--rules", "2", "--solver", "exact", "-C", "0.1"],
    }
    return {
        name: [str(folder / f"{data}.csv"), "--target", "y", "--method", method, "--kernels", kernels, *rest]
        for name, (data, method, kernels, *rest) in fits.items()
    }


class Fit:
    """One run of the program: processor seconds, objective and status."""

    def __init__(self, arguments, sweep="", listing=None):
        with tempfile.TemporaryDirectory() as out:
            command = [PROGRAM, "fit", *arguments, "-o", f"{out}/m.mercer", "--json", "--threads", "1"]
            command += ["--time-limit", str(LIMIT)]
            env = {**os.environ, "MERCER_SWEEP": sweep}
            if listing:
                env["MERCER_SWEEP_LIST"] = str(listing)
            with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as problem:
                child = subprocess.Popen(command, env=env, stdout=said, stderr=problem)
                _, _, used = os.wait4(child.pid, 0)
                child.returncode = 0
                said.seek(0)
                text = said.read()
                problem.seek(0)
                self.error = problem.read().decode()
        self.seconds = used.ru_utime + used.ru_stime
        found = json.loads(text) if text else {}
        certificate = found.get("certificate", {})
        self.objective = certificate.get("primal")
        self.status = certificate.get("status", "failed")


def readings(fits):
    """Every number with its value, and the fits that it is tried on."""
    numbers, readers, seconds = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for k, (name, arguments) in enumerate(fits.items()):
            listing = Path(folder) / f"{k}.txt"
            done = Fit(arguments, listing=listing)
            if done.objective is None:
                sys.exit(f"{name}: {done.error}")
            seconds[name] = done.seconds
            for line in listing.read_text().splitlines() if listing.exists() else []:
                number, value = line.split(" ", 1)
                numbers[number] = value
                readers.setdefault(number, []).append(name)
    breadth = {name: sum(name in fits for fits in readers.values()) for name in fits}
    for number, names in readers.items():
        long = [name for name in names if seconds[name] >= SHORT] or [max(names, key=lambda name: seconds[name])]
        readers[number] = sorted(long, key=lambda name: breadth[name])[:MOST_FITS]
    return numbers, readers


def factors(value):
    """By what a number is multiplied; a share above one half is brought nearer to 1 instead of beyond it."""
    try:
        x = float(value)
    except ValueError:
        return FACTORS
    return (0.01, 0.5, 0.5 * (1 + x) / x) if 0.5 <= x < 1 else FACTORS


def measure(number, value, fits, repeats):
    """A row per factor: seconds over seconds as it is, and what became of the answers."""
    before = {name: [Fit(a) for _ in range(repeats)] for name, a in fits.items()}
    changed = {factor: {name: [] for name in fits} for factor in factors(value)}
    for _ in range(repeats):
        for factor, runs in changed.items():
            for name, arguments in fits.items():
                runs[name].append(Fit(arguments, f"{number}*{factor}"))
    after = {name: [Fit(a) for _ in range(repeats)] for name, a in fits.items()}

    def least(runs):
        return {name: min(f.seconds for f in own) for name, own in runs.items()}

    first, second = sum(least(before).values()), sum(least(after).values())
    plain = least({name: before[name] + after[name] for name in fits})
    rows = []
    for factor, runs in changed.items():
        ratios, moved, lost = [], 0.0, []
        now = least(runs)
        for name in fits:
            ratios.append((now[name] / plain[name], name))
            was, is_now = before[name][0], runs[name][0]
            if is_now.objective is None or is_now.status != was.status:
                lost.append(f"{name}: {is_now.status}")
            elif was.objective:
                moved = max(moved, abs(is_now.objective - was.objective) / abs(was.objective))
        worst = max(ratios)
        rows.append(
            {
                "number": number,
                "value": value,
                "factor": f"{factor:.4g}",
                "fits": "; ".join(fits),
                "seconds": f"{sum(now.values()) / sum(plain.values()):.3f}",
                "known_to": f"{abs(first - second) / min(first, second):.3f}",
                "worst": f"{worst[0]:.3f}",
                "worst_fit": worst[1],
                "moved": f"{moved:.1e}",
                "ended_otherwise": "; ".join(lost),
            }
        )
    return rows


def summary(rows):
    """A line per number, the one that costs most first."""
    by_number = {}
    for row in rows:
        by_number.setdefault(row["number"], []).append(row)

    def cost(own):
        return max(math.inf if r["ended_otherwise"] else float(r["seconds"]) for r in own)

    head = "| number | value | fits | seconds over seconds as it is | known to | what else |"
    lines = [head, "|---|---|---|---|---|---|"]
    for number, own in sorted(by_number.items(), key=lambda item: -cost(item[1])):
        seconds = ", ".join(f"x{r['factor']}: {r['seconds']}" for r in own)
        told = [f"x{r['factor']}: {r['ended_otherwise']}" for r in own if r["ended_otherwise"]]
        moved = max(float(r["moved"]) for r in own)
        told += [f"objective moved by {moved:.0e}"] if moved > 0 else []
        first = own[0]
        line = [f"`{number}`", first["value"], first["fits"], seconds, first["known_to"], "; ".join(told)]
        lines.append(f"| {' | '.join(line)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=Path("constants"))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="name the numbers and the fits that read them, and stop")
    asked = parser.parse_args()
    build = ["cargo", "build", "--release", "-p", "mercer-cli", "--features", "sweep", "--target-dir", "target/sweep"]
    subprocess.run(build, cwd=ROOT, check=True)
    asked.out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp())
    try:
        fits = panel(folder)
        numbers, readers = readings(fits)
        if asked.names:
            wanted = tuple(asked.names)
            numbers = {n: v for n, v in numbers.items() if n in wanted or n.split(".")[0] in wanted}
        if asked.list:
            for number, value in numbers.items():
                print(f"{number} = {value}: {', '.join(readers[number])}")
            return
        with ThreadPoolExecutor(asked.workers) as pool:
            jobs = [pool.submit(measure, n, v, {f: fits[f] for f in readers[n]}, asked.repeats) for n, v in numbers.items()]
            rows = []
            for k, job in enumerate(jobs):
                rows += job.result()
                print(f"{k + 1} of {len(jobs)}: {rows[-1]['number']}", file=sys.stderr, flush=True)
                with (asked.out / "raw.csv").open("w", newline="") as out:
                    write = csv.DictWriter(out, rows[0].keys())
                    write.writeheader()
                    write.writerows(rows)
        (asked.out / "summary.md").write_text(summary(rows))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
