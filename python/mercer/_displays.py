"""Pictures of fitted models, as scikit-learn draws them; matplotlib is asked for only when one is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


def _axes(ax: Any, name: str, height: float | None = None) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as e:
        raise ImportError(f"{name} needs matplotlib: pip install matplotlib") from e
    if ax is not None:
        return ax
    return plt.subplots(figsize=None if height is None else (6.4, height), layout="constrained")[1]


@dataclass
class KernelWeightsDisplay:
    """Kernel weights as bars, a colour per machine or region."""

    kernel_names: list[str]
    #: (vectors, kernels)
    weights: np.ndarray
    labels: list[str] = field(default_factory=list)

    @classmethod
    def from_estimator(cls, estimator: Any, *, top: int = 20, ax: Any = None) -> KernelWeightsDisplay:
        """Draws the `top` heaviest kernels of a fitted estimator."""
        check_is_fitted(estimator)
        weights = np.reshape(estimator.kernel_weights_, (-1, len(estimator.kernel_names_)))
        labels = [] if len(weights) == 1 else [f"vector {k + 1}" for k in range(len(weights))]
        if len(weights) > 1 and hasattr(estimator, "_machine_labels"):
            told = [str(label) for label in estimator._machine_labels()]
            labels = told if len(told) == len(weights) else labels
        return cls(list(estimator.kernel_names_), weights, labels).plot(top=top, ax=ax)

    def plot(self, *, top: int = 20, ax: Any = None) -> KernelWeightsDisplay:
        """Draws the `top` heaviest kernels."""
        order = np.argsort(-self.weights.mean(axis=0), kind="stable")[:top]
        self.ax_ = _axes(ax, type(self).__name__, height=1.2 + 0.25 * len(order))
        self.figure_ = self.ax_.figure
        places, width = np.arange(len(order))[::-1], 0.8 / len(self.weights)
        for k, own in enumerate(self.weights):
            shift = 0.4 - width * (k + 0.5)
            self.ax_.barh(places + shift, own[order], height=width, label=self.labels[k] if self.labels else None)
        self.ax_.set_yticks(places, [self.kernel_names[m] for m in order])
        self.ax_.set_xlabel("kernel weight")
        zeros = int((self.weights == 0).all(axis=0).sum())
        self.ax_.set_title(f"{len(self.kernel_names) - zeros} of {len(self.kernel_names)} kernels have a weight")
        if self.labels:
            self.ax_.legend()
        return self


@dataclass
class ConvergenceDisplay:
    """Relative duality gap (or stationarity measure) against seconds, logarithmic."""

    #: Per machine, (seconds, gap).
    lines: list[tuple[np.ndarray, np.ndarray]]
    tol: float | None = None

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> ConvergenceDisplay:
        """Draws the trace of a fitted estimator."""
        check_is_fitted(estimator)
        machines = sorted({record.get("machine", 0) for record in estimator.trace_})
        lines = []
        for machine in machines:
            own = [r for r in estimator.trace_ if r.get("machine", 0) == machine and np.isfinite(r["gap"])]
            lines.append((np.array([r["seconds"] for r in own]), np.array([r["gap"] for r in own])))
        return cls(lines, getattr(estimator, "tol", None)).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ConvergenceDisplay:
        """Draws one line per machine."""
        self.ax_ = _axes(ax, type(self).__name__)
        self.figure_ = self.ax_.figure
        for k, (seconds, gap) in enumerate(self.lines):
            label = f"machine {k + 1}" if len(self.lines) > 1 else None
            self.ax_.plot(seconds, np.maximum(gap, 1e-16), marker=".", label=label)
        if self.tol is not None:
            self.ax_.axhline(self.tol, linestyle="--", color="0.5")
        self.ax_.set(yscale="log", xlabel="seconds", ylabel="relative gap")
        if len(self.lines) > 1:
            self.ax_.legend()
        return self


@dataclass
class RegionDisplay:
    """Where the regions of a localized model lie in the plane: their colours, blended by membership."""

    xx: np.ndarray
    yy: np.ndarray
    #: (points, regions)
    memberships: np.ndarray
    points: np.ndarray | None = None
    names: tuple[str, str] = ("x1", "x2")

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, resolution: int = 100, ax: Any = None) -> RegionDisplay:
        """Draws the regions of an estimator fitted to two columns, over the range of X."""
        check_is_fitted(estimator)
        if not hasattr(estimator, "memberships"):
            raise TypeError(f"{type(estimator).__name__} has no regions: use CLMKL, HLMKL, GLMKL or GSMKL")
        points = np.asarray(X, dtype=float)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(f"regions are drawn in the plane: X must have 2 columns, got shape {points.shape}")
        low, high = points.min(axis=0), points.max(axis=0)
        pad = 0.05 * (high - low)
        axes = [np.linspace(a - p, b + p, resolution) for a, b, p in zip(low, high, pad, strict=True)]
        xx, yy = np.meshgrid(*axes)
        grid: Any = np.column_stack([xx.ravel(), yy.ravel()])
        names = tuple(map(str, getattr(X, "columns", ("x1", "x2"))))
        if hasattr(X, "columns"):
            grid = type(X)(grid, columns=list(X.columns))
        found = np.asarray(estimator.memberships(grid))
        if found.ndim == 3:
            raise ValueError("each machine has regions of its own: draw an estimator of two classes")
        return cls(xx, yy, found, points, names).plot(ax=ax)  # type: ignore[arg-type]

    def plot(self, *, ax: Any = None) -> RegionDisplay:
        """Draws the plane and the points."""
        self.ax_ = _axes(ax, type(self).__name__)
        self.figure_ = self.ax_.figure
        import matplotlib.pyplot as plt

        colours = plt.get_cmap("tab10")(np.arange(self.memberships.shape[1]) % 10)[:, :3]
        shares = self.memberships / np.maximum(self.memberships.sum(axis=1, keepdims=True), 1e-300)
        # A blend of the regions' colours, half way to white.
        picture = 0.5 + 0.5 * (shares @ colours).reshape(*self.xx.shape, 3)
        extent = (self.xx.min(), self.xx.max(), self.yy.min(), self.yy.max())
        self.ax_.imshow(picture, origin="lower", extent=extent, aspect="auto", interpolation="nearest")
        if self.points is not None:
            self.ax_.scatter(self.points[:, 0], self.points[:, 1], s=8, color="k", linewidths=0)
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        return self


@dataclass
class ComparisonDisplay:
    """Mean and interval of each method, with a line at equal weights."""

    methods: list[str]
    mean: np.ndarray
    #: (methods, 2)
    interval: np.ndarray
    metric: str
    baseline: float | None = None

    @classmethod
    def from_comparison(cls, comparison: Any, *, ax: Any = None) -> ComparisonDisplay:
        """Draws what `mercer.compare` returned."""
        interval = comparison[["low", "high"]].to_numpy(dtype=float)
        own = [m for m in comparison.index if m.split("(")[0] == "uniform"]
        baseline = float(comparison.loc[own[0], "mean"]) if own else None
        mean = comparison["mean"].to_numpy(dtype=float)
        return cls(list(comparison.index), mean, interval, comparison.attrs["metric"], baseline).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ComparisonDisplay:
        """Draws a mark per method, the first on top."""
        self.ax_ = _axes(ax, type(self).__name__, height=1.2 + 0.3 * len(self.methods))
        self.figure_ = self.ax_.figure
        places = np.arange(len(self.methods))[::-1]
        spread = np.nan_to_num(np.abs(self.interval - self.mean[:, None])).T
        self.ax_.errorbar(self.mean, places, xerr=spread, fmt="o", capsize=3)
        if self.baseline is not None:
            self.ax_.axvline(self.baseline, linestyle="--", color="0.5", label="equal weights")
            self.ax_.legend()
        self.ax_.set_yticks(places, self.methods)
        self.ax_.set_xlabel(f"{self.metric}, mean and 95 % interval")
        return self
