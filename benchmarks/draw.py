"""Draws what fits cost against rows and kernels, with the floor beside it.

python benchmarks/draw.py RUN [SCALE]

RUN is a folder with cost.csv (of bench_cost) and micro.md (of bench_micro), SCALE one with scale-normal.md (of
bench_scale; default RUN). Writes cost-rows.svg, cost-kernels.svg and scale.svg into docs/figures. The floor is two
passes over the stored terms in each iteration, at the bandwidth that bench_micro found for reading.
"""

import csv
import re
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("svg")
mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "mercer", "font.sans-serif": ["DejaVu Sans"]})
mpl.rcParams.update({"font.size": 8, "axes.titlesize": 8})

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import LogLocator  # noqa: E402

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
ACROSS = 5
MEASURED, FLOOR = "#2458a6", "#b5532a"
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def bandwidth(run):
    """Bytes a second on one thread and on two: medians."""
    line = next(line for line in (run / "micro.md").read_text().splitlines() if "| read |" in line)
    one, _, two, _ = (1e9 * float(number) for number in re.findall(r"([\d.]+) GB/s", line))
    return one, two


def fits(run):
    """Lines of cost.csv with numbers as numbers."""
    with open(run / "cost.csv", newline="") as file:
        for line in csv.DictReader(file):
            whole = {key: int(line[key]) for key in ("rows", "kernels", "bytes", "iterations")}
            yield {"method": line["method"], "seconds": float(line["seconds"]), **whole}


def floor(line, speed):
    return 2 * line["iterations"] * line["bytes"] / speed


def growth(letter, points):
    """How seconds grow, from the first to the last point."""
    (x0, y0), (x1, y1) = points[0], points[-1]
    return f": {letter}^{np.log(y1 / y0) / np.log(x1 / x0):.1f}" if x1 > x0 else ""


def plain(axis, sizes):
    """Ticks at the sizes themselves."""
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=45)
    axis.yaxis.set_major_locator(LogLocator(numticks=5))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.minorticks_off()
    axis.tick_params(bottom=False, left=False)
    axis.grid(axis="y", color="#dddddd", linewidth=0.5)


def cost(lines, key, letter, speed, name):
    """A panel for each method: measured seconds, and the floor."""
    methods = list(dict.fromkeys(line["method"] for line in lines))
    sizes = sorted({line[key] for line in lines})
    down = -(-len(methods) // ACROSS)
    figure, panels = plt.subplots(down, ACROSS, figsize=(9, 1.9 * down + 0.4), sharex=True, sharey=True, squeeze=False)
    for panel, method in zip(panels.flat, methods, strict=False):
        own = sorted((line for line in lines if line["method"] == method), key=lambda line: line[key])
        points = [(line[key], line["seconds"]) for line in own]
        panel.plot(*zip(*points, strict=True), "o-", color=MEASURED, markersize=3, linewidth=1.2)
        panel.plot([x for x, _ in points], [floor(line, speed) for line in own], "--", color=FLOOR, linewidth=1)
        panel.set_title(method + growth(letter, points))
        plain(panel, sizes)
    for panel in list(panels.flat)[len(methods) :]:
        panel.set_visible(False)
    figure.legend(panels[0, 0].lines, ["fit", "floor"], loc="lower right", frameon=False)
    finish(figure, key, name)


def scale(folder, speed):
    """bench_scale's table: kernels and fit, in low-rank factors, on two threads."""
    rows = []
    for line in (folder / "scale-normal.md").read_text().splitlines()[2:]:
        n, factors, build, fit, iterations, *_ = (cell.strip() for cell in line.strip("|").split("|"))
        amount, unit = re.search(r"in ([\d.]+) (\w+)", factors).groups()
        line = {"iterations": int(iterations), "bytes": float(amount) * UNITS[unit]}
        rows.append((int(n), float(build), float(fit), floor(line, speed)))
    sizes, build, fit, least = zip(*rows, strict=True)
    figure, panel = plt.subplots(figsize=(4.5, 3.2))
    panel.plot(sizes, fit, "o-", color=MEASURED, markersize=3, linewidth=1.2, label="fit")
    panel.plot(sizes, build, "s-", color="#5f8f3e", markersize=3, linewidth=1.2, label="building the kernels")
    panel.plot(sizes, least, "--", color=FLOOR, linewidth=1, label="floor of the fit")
    plain(panel, sizes)
    panel.legend(frameon=False)
    finish(figure, "rows", "scale")


def finish(figure, label, name):
    figure.supxlabel(label)
    figure.supylabel("seconds")
    figure.tight_layout()
    path = FIGURES / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)
    # Hundredths of a point are enough; labels, which follow a tag, stay.
    path.write_text(re.sub(r"(?<![\d>])(\d+\.\d\d)\d+", r"\1", path.read_text()))
    print(f"{name}.svg: {path.stat().st_size / 1000:.0f} kB")


def main(run, folder=None):
    run = Path(run)
    one, two = bandwidth(run)
    lines = list(fits(run))
    cost([line for line in lines if line["kernels"] == 20], "rows", "n", one, "cost-rows")
    cost([line for line in lines if line["rows"] == 500], "kernels", "M", one, "cost-kernels")
    scale(Path(folder or run), two)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:3])
