"""The tables of the suite, from its records.

python benchmarks/tables.py RUN/suite.jsonl [MORE.jsonl …] prints them anew; where several files have the same
measurement the last one counts.
"""

import json
import sys
from pathlib import Path

from problems import PROBLEMS

WRAPPED = ("gmkl", "l2", "l1")


def show(number, form):
    return "\N{EN DASH}" if number is None or number != number else format(number, form)


def row(*cells):
    return f"| {' | '.join(cells)} |"


def heads(*titles):
    return [row(*titles), "|" + "---|" * len(titles)]


def ratio(a, b):
    return a / b if a is not None and b else None


class Records:
    """What was measured, by problem, threads and kind."""

    def __init__(self, records):
        self.records = records
        self.problems = list(dict.fromkeys(r["problem"] for r in records if "problem" in r))
        self.counts = sorted({r["threads"] for r in records if r["kind"] == "unit"})

    def of(self, problem, count, kind, what=""):
        wanted = (problem, count, kind)
        found = (r for r in self.records if (r.get("problem"), r.get("threads"), r["kind"]) == wanted)
        return [r for r in found if r["what"].startswith(what)]

    def seconds(self, problem, count, kind, what=""):
        return next((r["seconds"] for r in self.of(problem, count, kind, what)), None)

    def fit(self, problem, count, name):
        return next((r for r in self.of(problem, count, "fit") if r["name"].endswith(name)), None)


def fits(records, problem, count):
    """Every method on one problem."""
    p = PROBLEMS[problem]()
    M, n = p.shape
    unit = records.seconds(problem, count, "unit", "fits")
    one = f"one {'SVR' if p.regression else 'SVC'} {show(unit and 1e3 * unit, '.1f')} ms"
    yield f"\n### {problem}: {n} rows, {M} kernels, C = {p.C:g}; {count} thread{'s' * (count > 1)}; {one}\n"
    times = [f"{road} \N{MULTIPLICATION SIGN}SVC" for road in ("solver", "stack", "raw")]
    yield from heads("method", *times, "raw (s)", "of it kernels (s)", "objective", "gap", "iterations", "kernels")
    making = records.seconds(problem, count, "grams")
    for r in records.of(problem, count, "fit"):
        if "note" in r:
            yield row(r["name"], r["note"])
            continue
        # The unit of the process where it was timed.
        own = records.seconds(problem, count, "unit", r["what"])
        kernels = r.get("kernels", making if r["raw"] else None)
        yield row(
            r["name"],
            *(show(ratio(r.get(key), own), ".1f") for key in ("solver", "stack", "raw")),
            show(r["raw"], ".3f"),
            show(kernels, ".3f"),
            show(r["objective"], ".6g"),
            show(r["gap"], ".1e"),
            f"{r['iterations']:.0f}",
            f"{r['used']:.0f}",
        )
    for r in records.of(problem, count, "failure"):
        yield row(r["what"].removeprefix("package:"), r["note"])


def machines(records):
    """SMO beside LIBSVM."""
    yield "\n### The machine alone: one kernel, the mean of all, at equal gap, one thread\n"
    yield "LIBSVM is timed without the checks of its arguments that `SVC.fit` makes around it.\n"
    theirs = ("LIBSVM's tol", "its gap", "objective", "LIBSVM (ms)")
    yield from heads("problem", *theirs, "mercer (ms)", "its gap", "SVC.fit (ms)", "LIBSVM / mercer")
    for r in (r for r in records.records if r["kind"] == "machine"):
        ours = r["ours"]
        milliseconds = [f"{1e3 * s:.2f}" for s in (r["seconds"], ours["seconds"], r["whole"])]
        start = (r["problem"], f"{r['tol']:.0e}", f"{r['gap']:.1e}", f"{r['objective']:.6g}", *milliseconds[:2])
        yield row(*start, f"{ours['gap']:.1e}", milliseconds[2], f"{r['seconds'] / ours['seconds']:.2f}")


def raw(records):
    """Time and memory from the table."""
    yield "\n### From the table, beside NumPy and a wrapper, one thread\n"
    yield "The fastest wrapper is that of whatever method is quickest. Memory is the increase over imports; the last"
    yield "column leaves out pages of program code that the first fit brings in.\n"
    seconds = ("mercer (s)", "NumPy + its wrapper (s)", "times", "NumPy + fastest wrapper (s)", "times")
    mebibytes = ("mercer (MiB)", "NumPy + its wrapper (MiB)", "share", "share without code")
    yield from heads("problem", "method", *seconds, *mebibytes)
    for problem in records.problems:
        theirs = {m: records.fit(problem, 1, f", {m}") for m in WRAPPED}
        if None in theirs.values():
            continue
        memory = {r["name"]: r for r in records.of(problem, 1, "memory")}
        fastest = min(r["raw"] for r in theirs.values())
        for method in WRAPPED:
            ours, own = records.fit(problem, 1, f"mercer {method}")["raw"], theirs[method]["raw"]
            small, large = memory.get(f"mercer {method}"), memory.get(f"numpy {method}")
            cells = [f"{ours:.3f}", f"{own:.3f}", f"{own / ours:.1f}", f"{fastest:.3f}", f"{fastest / ours:.1f}"]
            if small and large:
                bare = (small["mebibytes"] - small["code"]) / (large["mebibytes"] - large["code"])
                share = small["mebibytes"] / large["mebibytes"]
                cells += [f"{small['mebibytes']:.1f}", f"{large['mebibytes']:.1f}", f"{share:.3f}", f"{bare:.3f}"]
            yield row(problem, method, *cells)


def speedups(records):
    """One thread against two."""
    yield "\n### Two threads: seconds on one / seconds on two\n"
    yield from heads("problem", "method", "fit from the table", "its kernels", "solver", "fit on one (s)", "on two (s)")
    for problem in records.problems:
        for r in records.of(problem, 1, "fit", "fits"):
            two = records.fit(problem, 2, r["name"])
            if two is not None:
                ratios = [show(ratio(r.get(key), two.get(key)), ".2f") for key in ("raw", "kernels", "solver")]
                yield row(problem, r["name"], *ratios, f"{r['raw']:.3f}", f"{two['raw']:.3f}")


def render(records):
    """All tables as one text."""
    found = Records(records)
    lines = [r["text"] for r in records if r["kind"] == "head"][-1:]
    for problem in found.problems:
        for count in found.counts:
            if found.of(problem, count, "unit"):
                lines += fits(found, problem, count)
    if any(r["kind"] == "machine" for r in records):
        lines += machines(found)
    if 1 in found.counts:
        lines += raw(found)
    if {1, 2} <= set(found.counts):
        lines += speedups(found)
    return "\n".join(lines)


def latest(files):
    """Records of all files; a measurement made again replaces the earlier one."""
    kept = {}
    for file in files:
        lines = [json.loads(line) for line in Path(file).read_text().splitlines()]
        keys = [(r.get("problem", ""), r.get("threads", 0), r.get("what", r["kind"])) for r in lines]
        kept |= {key: [r for k, r in zip(keys, lines, strict=True) if k == key] for key in keys}
    return [r for key in sorted(kept) for r in kept[key]]


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(render(latest(sys.argv[1:])))
