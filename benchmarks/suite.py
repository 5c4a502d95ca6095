"""mercer beside what users would pick today, on five problems, in one run.

python benchmarks/suite.py [--problems P1,…,P5] [--repeats 5] [--threads 1,2] [--limit 120] [--out FOLDER]

Every time is a median and stands beside the objective it reached and its certified gap. The unit is one fit of
scikit-learn's SVC (SVR) on the mean of a stack (M, n, n), forming the mean included, timed in the same process: ×SVC.
Of mercer, "solver" is the time from stored terms, "stack" a fit from an array (n, n, M) with its reading and checking,
"raw" a fit from the table, "kernels" the part of that before the solver. Of wrappers, "stack" is a fit from the stack
and "raw" one with the making of the stack in NumPy.

Every problem, package and measurement of memory has a process of its own. Packages that are not installed are named,
and so are those without an answer after --limit seconds. FOLDER gets the tables in suite.md and the numbers in
suite.jsonl. The machine alone beside LIBSVM needs cargo build --release -p mercer --example bench_smo.
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
import tables  # noqa: E402
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


# Each measurement is made by a process of its own and says what it found in lines of JSON.


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
    """Largest increase of resident memory over that after imports and reading the table, and how much of it is code."""

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


KINDS = {"fits": measure_fits, "package": measure_package, "memory": measure_memory, "machine": measure_machine}


def child(what, p, repeats):
    kind, *own = what.split(":")
    KINDS[kind](p, repeats, *own)


def versions():
    peers = []
    for package in ("himalaya", "celer", "MKLpy"):
        try:
            peers.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            peers.append(f"{package} not installed")
    base = f"scikit-learn {sklearn.__version__}, numpy {np.__version__}, scipy {scipy.__version__}"
    return f"mercer {mercer.__version__}, {base}, {', '.join(peers)}, Python {platform.python_version()}"


def machine():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.machine()
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def ask(problem, count, what, args):
    """Records of one measurement."""
    command = [sys.executable, __file__, "--child", what, "--problems", problem, "--threads", str(count)]
    command += ["--repeats", str(args.repeats)]
    limit = args.limit if what.startswith("package") else None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        lines = done.stdout.splitlines()
        if done.returncode:
            fault = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            lines.append(json.dumps({"kind": "failure", "note": f"failed: {fault}"}))
    except subprocess.TimeoutExpired as e:
        lines = (e.stdout or b"").decode().splitlines()
        lines.append(json.dumps({"kind": "failure", "note": f"no answer in {limit:g} s"}))
    return [{"problem": problem, "threads": count, "what": what} | json.loads(line) for line in lines]


def plan(problem, counts):
    """(threads, measurement), in the order of the tables."""
    for count in counts:
        yield count, "fits"
        if count == 1:
            yield from ((1, f"package:{name}") for name in PACKAGES)
    if 1 in counts:
        yield from ((1, f"memory:{road}:{method}") for road in ("mercer", "numpy") for method in WRAPPERS)
    if SMO.exists():
        yield 1, "machine"


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
    head = {"kind": "head", "text": f"{versions()};\n{machine()}; medians of up to {args.repeats} runs."}
    records = [head]
    for problem in problems:
        for count, what in plan(problem, counts):
            print(f"{problem}, {count} thread(s): {what}", file=sys.stderr, flush=True)
            records += ask(problem, count, what, args)
            if args.out:
                args.out.mkdir(parents=True, exist_ok=True)
                (args.out / "suite.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    text = tables.render(records)
    print(text)
    if args.out:
        (args.out / "suite.md").write_text(text + "\n")
    if not SMO.exists():
        print(f"The machine alone was not measured: {SMO} is not built.", file=sys.stderr)


if __name__ == "__main__":
    main()
