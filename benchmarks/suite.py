"""mercer beside what users would pick today, on five problems, in one run.

python benchmarks/suite.py [--problems P1,…,P5] [--repeats 5] [--threads 1,2] [--limit 120] [--out FOLDER]

Every time is a median and stands beside the objective it reached and its certified gap. The unit is one fit of scikit-learn's SVC (SVR) on
the mean of a stack (M, n, n), forming the mean included, timed in the same process: ×SVC. Of mercer, "solver" is the time from stored
terms, "stack" a fit from an array (n, n, M) with its reading and checking, "raw" a fit from the table, "kernels" the part of that before
the solver. Of wrappers, "stack" is a fit from the stack and "raw" one with the making of the stack in NumPy.

Every problem, package and measurement of memory has a process of its own. Packages that are not installed are named, and so are those
without an answer after --limit seconds. FOLDER gets suite.md and the numbers in suite.jsonl. The machine alone beside LIBSVM needs the program
bench_smo: cargo build --release -p mercer --example bench_smo.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from importlib import metadata
from pathlib import Path

threads = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "1"
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = threads.split(",")[0]

import numpy as np  # noqa: E402
import scipy  # noqa: E402
import sklearn  # noqa: E402
from peers import PACKAGES, WRAPPERS, Machine  # noqa: E402
from problems import EPSILON, PROBLEMS  # noqa: E402

import mercer  # noqa: E402

SMO = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parent.parent / "target")) / "release/examples/bench_smo"
#: Repeating stops after so many seconds.
ENOUGH = 20.0
METHODS = {
    "uniform": ("UniformMKL", {}),
    "gmkl": ("GMKL", {"v": 0.5}),
    "l2": ("LpMKL", {"p": 2}),
    "l1": ("LpMKL", {"p": 1}),
    "smkl": ("SMKL", {}),
    "clmkl": ("CLMKL", {"p": 4 / 3, "evenness": 0.5}),
}


def estimator(p, method, kernels, **scaling):
    """An estimator of ours, on as many threads as the process may use."""
    family, own = METHODS[method]
    extra = {"epsilon": EPSILON} if p.regression else {}
    kind = getattr(mercer, family + ("Regressor" if p.regression else "Classifier"))
    return kind(kernels, C=p.C, n_jobs=int(threads), **scaling, **own, **extra)


def fit_raw(p, method):
    return estimator(p, method, p.bank, normalize=p.normalize, standardize=False).fit(p.X, p.y)


def timed(work, repeats):
    """Median of the seconds of a few calls, and the last result."""
    seconds, result = [], None
    for _ in range(repeats):
        began = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - began)
        if sum(seconds) > ENOUGH:
            break
    return float(np.median(seconds)), result


# Measurements: each is made by a process of its own and says what it found in lines of JSON.


def say(**record):
    print(json.dumps(record), flush=True)


def unit(p, stack, repeats):
    seconds, _ = timed(lambda: Machine(p).fit(stack.mean(axis=0)), repeats)
    say(kind="unit", seconds=seconds)


def measure_fits(p, repeats):
    """Our methods and the wrappers, from the stack and from the table."""
    making, stack = timed(p.stack, 1 if p.is_large else repeats)
    unit(p, stack, repeats)
    say(kind="grams", seconds=making)
    last = None if p.is_large else np.ascontiguousarray(np.moveaxis(stack, 0, 2))
    for method in METHODS:
        solver, kernels, ready = [], [], None

        def whole(method=method, kernels=kernels):
            began = time.perf_counter()
            model = fit_raw(p, method)
            kernels.append((time.perf_counter() - began - model.trace_[-1]["seconds"], model.trace_[-1]["seconds"]))
            return model

        def from_stack(method=method, solver=solver):
            model = estimator(p, method, "precomputed", normalize=None).fit(last, p.y)
            solver.append(model.trace_[-1]["seconds"])

        if last is not None:
            ready, _ = timed(from_stack, repeats)
        raw, model = timed(whole, repeats)
        solver = solver or [s for _, s in kernels]
        say(
            kind="fit",
            name=f"mercer {method}",
            solver=float(np.median(solver)),
            stack=ready,
            raw=raw,
            kernels=float(np.median([k for k, _ in kernels])),
            objective=model.primal_objective_,
            gap=model.duality_gap_,
            iterations=model.n_iter_,
            used=int((np.asarray(model.kernel_weights_) > 0).sum()),
        )
    del last
    for method, wrapper in WRAPPERS.items():
        seconds, found = timed(lambda w=wrapper: w(p, stack), repeats)
        if p.is_large:
            raw = making + seconds  # a second stack would not fit beside the first on a small machine
        else:
            raw, _ = timed(lambda w=wrapper: w(p, p.stack()), repeats)
        report(f"NumPy + {'SVR' if p.regression else 'SVC'}, {method}", seconds, raw, found)


def report(name, seconds, raw, found):
    objective, gap, iterations, used = (float(x) for x in found)
    say(kind="fit", name=name, stack=seconds, raw=raw, objective=objective, gap=gap, iterations=iterations, used=used)


def measure_package(p, repeats, name):
    stack = p.stack()
    unit(p, stack, repeats)
    try:
        # A first call to take imports and compilation apart; where it is long, it is the answer.
        seconds, found = timed(lambda: PACKAGES[name](p, stack), 1)
        if seconds < ENOUGH / 2:
            seconds, found = timed(lambda: PACKAGES[name](p, stack), repeats)
    except (ImportError, NotImplementedError) as e:
        say(kind="fit", name=name, note=f"not installed: {e}" if isinstance(e, ImportError) else str(e))
        return
    report(name, seconds, None, found)


def measure_memory(p, _, road, method):
    """Largest increase of resident memory over that after imports and the reading of the table, and the part that is code."""

    def resident(key):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024

    before, code = resident("VmRSS:"), resident("RssFile:")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    _ = fit_raw(p, method) if road == "mercer" else WRAPPERS[method](p, p.stack())
    peak = resident("VmHWM:") - before
    say(kind="memory", name=f"{road} {method}", mebibytes=peak, code=resident("RssFile:") - code)


def measure_machine(p, repeats):
    """One kernel, the mean of all: LIBSVM at two tolerances, and our machine to the gaps that it left."""
    K = p.stack().mean(axis=0)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "K.npy"), K)
        np.save(Path(folder, "y.npy"), p.y.astype(float))
        for tol in (1e-3, 1e-5):
            machine = Machine(p, tol)
            whole, _ = timed(lambda m=machine: m.fit(K), repeats)
            seconds, a = timed(lambda m=machine: m.libsvm(K), repeats)
            f = K @ a
            primal, dual = 0.5 * a @ f + machine.loss(f), machine.dual_sum(a) - 0.5 * a @ f
            gap = max((primal - dual) / primal, 1e-9)
            told = [SMO, folder, f"{p.C:g}", f"{gap:.6e}", str(repeats), *([str(EPSILON)] if p.regression else [])]
            ours = json.loads(subprocess.run(told, check=True, capture_output=True, text=True).stdout)
            say(kind="machine", tol=tol, seconds=seconds, whole=whole, gap=gap, objective=primal, ours=ours)


def child(what, p, repeats):
    kind, *own = what.split(":")
    work = {"fits": measure_fits, "package": measure_package, "memory": measure_memory, "machine": measure_machine}[kind]
    work(p, repeats, *own)


# Tables.


class Run:
    """Records of all measurements, and the tables made of them."""

    def __init__(self, args):
        self.args, self.records = args, []

    def measure(self, problem, count, what):
        command = [sys.executable, __file__, "--child", what, "--problems", problem, "--threads", str(count)]
        command += ["--repeats", str(self.args.repeats)]
        told = {"problem": problem, "threads": count, "what": what}
        try:
            limit = self.args.limit if what.startswith("package") else None
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
            lines = done.stdout.splitlines()
            if done.returncode:
                fault = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
                lines.append(json.dumps({"kind": "failure", "note": f"failed: {fault}"}))
        except subprocess.TimeoutExpired as e:
            lines = (e.stdout or b"").decode().splitlines()
            lines.append(json.dumps({"kind": "failure", "note": f"no answer in {limit:g} s"}))
        self.records += [told | json.loads(line) for line in lines]

    def of(self, problem, count, kind, what=""):
        found = [r for r in self.records if (r["problem"], r["threads"], r["kind"]) == (problem, count, kind)]
        return [r for r in found if r["what"].startswith(what)]

    def unit(self, problem, count, what):
        found = self.of(problem, count, "unit", what)
        return found[0]["seconds"] if found else np.nan

    def fit(self, problem, count, name):
        return next((r for r in self.of(problem, count, "fit") if r["name"] == name), None)

    def fits(self, problem, count):
        one = self.unit(problem, count, "fits")
        p = PROBLEMS[problem]()
        M, n = p.shape
        head = f"\n### {problem}: {n} rows, {M} kernels, C = {p.C:g}; {count} thread{'s' * (count > 1)}"
        yield f"{head}; one {'SVR' if p.regression else 'SVC'} {1e3 * one:.1f} ms\n"
        yield "| method | solver ×SVC | stack ×SVC | raw ×SVC | raw (s) | of it kernels (s) | objective | gap | iterations | kernels |"
        yield "|---|---|---|---|---|---|---|---|---|---|"
        making = self.of(problem, count, "grams")
        for r in self.of(problem, count, "fit"):
            if "note" in r:
                yield f"| {r['name']} | {r['note']} |"
                continue
            # In the process where it was timed.
            own = self.unit(problem, count, r["what"])
            kernels = r.get("kernels", making[0]["seconds"] if r["raw"] and making else None)
            times = [show(r.get(k) and r[k] / own, ".1f") for k in ("solver", "stack", "raw")]
            yield f"| {r['name']} | {' | '.join(times)} | {show(r['raw'], '.3f')} | {show(kernels, '.3f')} " + (
                f"| {show(r['objective'], '.6g')} | {show(r['gap'], '.1e')} | {r['iterations']:.0f} | {r['used']:.0f} |"
            )
        for r in self.of(problem, count, "failure"):
            yield f"| {r['what'].removeprefix('package:')} | {r['note']} |"

    def machines(self):
        yield "\n### The machine alone: one kernel, the mean of all, at equal gap, one thread\n"
        yield "LIBSVM is timed without the checks of its arguments that `SVC.fit` makes around it; the last column but one has them.\n"
        yield "| problem | LIBSVM's tol | gap | objective | LIBSVM (ms) | mercer (ms) | its gap | SVC.fit (ms) | LIBSVM / mercer |"
        yield "|---|---|---|---|---|---|---|---|---|"
        for r in (r for r in self.records if r["kind"] == "machine"):
            ours, theirs = r["ours"], r["seconds"]
            yield f"| {r['problem']} | {r['tol']:.0e} | {r['gap']:.1e} | {r['objective']:.6g} | {1e3 * theirs:.2f} " + (
                f"| {1e3 * ours['seconds']:.2f} | {ours['gap']:.1e} | {1e3 * r['whole']:.2f} | {theirs / ours['seconds']:.2f} |"
            )

    def raw(self, problems):
        yield "\n### From the table, beside NumPy and a wrapper, one thread\n"
        yield "The fastest wrapper is that of whatever method is quickest. Memory is the increase over imports; the last column leaves out"
        yield "pages of program code that the first fit brings in.\n"
        yield (
            "| problem | method | mercer (s) | NumPy + its wrapper (s) | times | NumPy + fastest wrapper (s) | times "
            "| mercer (MiB) | NumPy + its wrapper (MiB) | share | share without code |"
        )
        yield "|---|---|---|---|---|---|---|---|---|---|---|"
        for problem in problems:
            kind = "SVR" if problem == "P5" else "SVC"
            theirs = {m: self.fit(problem, 1, f"NumPy + {kind}, {m}") for m in WRAPPERS}
            memory = {r["name"]: (r["mebibytes"], r["mebibytes"] - r["code"]) for r in self.of(problem, 1, "memory")}
            if None in theirs.values():
                continue
            fastest = min(r["raw"] for r in theirs.values())
            for method in WRAPPERS:
                ours, own = self.fit(problem, 1, f"mercer {method}")["raw"], theirs[method]["raw"]
                unknown = (np.nan, np.nan)
                small, large = (np.array(memory.get(f"{road} {method}", unknown)) for road in ("mercer", "numpy"))
                shares = small / large
                yield (
                    f"| {problem} | {method} | {ours:.3f} | {own:.3f} | {own / ours:.1f} | {fastest:.3f} | {fastest / ours:.1f} "
                    f"| {small[0]:.1f} | {large[0]:.1f} | {shares[0]:.3f} | {shares[1]:.3f} |"
                )

    def speedups(self, problems):
        yield "\n### Two threads: seconds on one / seconds on two\n"
        yield "| problem | method | whole fit from the table | its kernels | solver | whole fit (s), one | two |"
        yield "|---|---|---|---|---|---|---|"
        for problem in problems:
            for r in self.of(problem, 1, "fit", "fits"):
                two = self.fit(problem, 2, r["name"])
                if two is None:
                    continue
                ratios = (show(r.get(k) and r[k] / two[k], ".2f") for k in ("raw", "kernels", "solver"))
                yield f"| {problem} | {r['name']} | {' | '.join(ratios)} | {r['raw']:.3f} | {two['raw']:.3f} |"


def show(number, form):
    return "–" if number is None or not np.isfinite(number) else format(number, form)


def versions():
    peers = []
    for package in ("himalaya", "celer", "MKLpy"):
        try:
            peers.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            peers.append(f"{package} not installed")
    ours = f"mercer {mercer.__version__}, scikit-learn {sklearn.__version__}, numpy {np.__version__}, scipy {scipy.__version__}"
    return f"{ours}, {', '.join(peers)}, Python {platform.python_version()}"


def machine():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.machine()
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    args = parser.parse_args()
    problems, counts = args.problems.split(","), [int(t) for t in args.threads.split(",")]
    if args.child:
        warnings.simplefilter("ignore")
        child(args.child, PROBLEMS[problems[0]](), args.repeats)
        return
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
    out = open(args.out / "suite.md", "w") if args.out else None

    def tell(lines):
        for line in lines:
            print(line, flush=True)
            if out:
                print(line, file=out, flush=True)

    run = Run(args)
    tell([f"{versions()};", f"{machine()}; medians of up to {args.repeats} runs."])
    for problem in problems:
        for count in counts:
            run.measure(problem, count, "fits")
            for package in PACKAGES if count == 1 else ():
                run.measure(problem, 1, f"package:{package}")
            tell(run.fits(problem, count))
        if 1 in counts:
            for road in ("mercer", "numpy"):
                for method in WRAPPERS:
                    run.measure(problem, 1, f"memory:{road}:{method}")
        if SMO.exists():
            run.measure(problem, 1, "machine")
    if SMO.exists():
        tell(run.machines())
    else:
        tell([f"\nThe machine alone was not measured: {SMO} is not built."])
    if 1 in counts:
        tell(run.raw(problems))
    if {1, 2} <= set(counts):
        tell(run.speedups(problems))
    if args.out:
        (args.out / "suite.jsonl").write_text("".join(json.dumps(r) + "\n" for r in run.records))


if __name__ == "__main__":
    main()
