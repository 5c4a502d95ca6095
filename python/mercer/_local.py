"""Kernel weights that depend on where a sample lies: CLMKL, HLMKL, LMKL, ℓp-GLMKL, GS-MKL."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer import _input, _mercer, _params
from mercer._base import Mixin, MKLClassifier, MKLRegressor


class _Localized(Mixin):
    """Regions that the user gives, and what is learned per region."""

    kernel_weights_: np.ndarray

    #: The parameter that gives regions, if the method has one.
    _region_parameter: str | None = None

    def _regions(self) -> Any:
        return getattr(self, self._region_parameter) if self._region_parameter else None

    def _region_column(self) -> str | None:
        """The name of the column that says the region; a number counts from 0."""
        regions = self._regions()
        if isinstance(regions, Integral) and not isinstance(regions, bool):
            return str(int(regions) + 1)
        return regions if isinstance(regions, str) else None

    def _given(self, X: Any, data: _input.Training) -> dict[str, Any]:
        regions, name = self._regions(), self._region_parameter
        self.__dict__.pop("region_labels_", None)
        if regions is None or self._region_column() is not None:
            return {}
        if callable(regions):
            return {"memberships": self._memberships_by(regions, X, len(data.y), fitting=True)}
        labels = np.asarray(regions)
        if labels.shape != (len(data.y),):
            raise ValueError(
                f"parameter `{name}` must be a column, a callable, or one label per row, shape ({len(data.y)},), got shape {labels.shape}"
            )
        rows = slice(None) if data.weight is None else data.weight > 0
        self.region_labels_ = np.unique(labels[rows])
        codes = np.searchsorted(self.region_labels_, labels).clip(max=len(self.region_labels_) - 1)
        return {"region_labels": codes.tolist()}

    def _memberships_by(self, regions: Callable[[Any], Any], X: Any, n: int, *, fitting: bool) -> np.ndarray:
        """What the callable says of rows: labels as memberships 0 and 1, or memberships as they are."""
        name = self._region_parameter
        found = np.asarray(regions(X))
        if found.ndim == 2 and found.shape[0] == n:
            return np.ascontiguousarray(found, dtype=np.float64)
        if found.shape != (n,):
            raise ValueError(f"`{name}` must return shape ({n},) or ({n}, regions), got {found.shape}")
        if fitting:
            self.region_labels_ = np.unique(found)
        unknown = ~np.isin(found, self.region_labels_)
        if unknown.any():
            raise ValueError(f"`{name}` says {_params.plain(found[unknown][0])!r}, but the regions are {_params.plain(self.region_labels_)}")
        return (found[:, np.newaxis] == self.region_labels_).astype(np.float64)

    def _rows(self, X: Any) -> dict[str, Any]:
        rows = super()._rows(X)
        if callable(self._regions()):
            n = len(getattr(rows["rows"], "numbers", rows["rows"]))
            rows["memberships"] = self._memberships_by(self._regions(), X, n, fitting=False)
        return rows

    def memberships(self, X: Any) -> np.ndarray:
        """Where rows lie, (n, regions): memberships in the regions, or the gates of the kernels for LMKL.

        With several machines that have regions or gates of their own, (machines, n, regions).
        """
        rows = self._rows(X)
        found = self._model.places(**rows)[0]
        return found[0] if len(found) == 1 else np.stack(found)

    def local_weights(self, X: Any) -> np.ndarray:
        """The weight of every kernel at every row, (n, M): which kernel is used where.

        Weights of the regions, averaged by membership; with several machines, unless they share their weights,
        (machines, n, M).
        """
        rows = self._rows(X)
        found = self._model.places(**rows)[1]
        shared = getattr(self, "shared_weights", False)
        return found[0] if len(found) == 1 or shared else np.stack(found)

    def _adopt(self, model: _mercer.Model) -> None:
        super()._adopt(model)
        weights = np.atleast_2d(self.kernel_weights_)
        kernels = len(self.kernel_names_)
        by_region = weights.reshape(len(weights), -1, kernels)
        if not self._has_regions():
            by_region = by_region[:, 0]
        self.kernel_weights_ = by_region[0] if len(by_region) == 1 else by_region

    def _has_regions(self) -> bool:
        return True

    def _machine_labels(self) -> list[Any]:
        if not self._has_regions():
            return super()._machine_labels()
        names = [f"region {j}" for j in range(1, self.kernel_weights_.shape[-2] + 1)]
        if self.kernel_weights_.ndim == 2:
            return names
        return [f"{machine}, {name}" for machine in self._machine_names for name in names]


def _kernel(name: str, value: Any) -> str | None:
    """A kernel to place rows with: None, a text or object of the kernel language, or the number of a base kernel from 0."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value) + 1)
    if value is None or isinstance(value, str):
        return value
    from mercer.kernels import Kernel, to_text

    if isinstance(value, Kernel):
        return to_text(value)
    raise TypeError(f"parameter `{name}` must be a kernel, the number of one, or None, got {value!r}")


@dataclass(eq=False, repr=False, kw_only=True)
class _CLMKL(_Localized):
    n_clusters: int = 3
    evenness: float | str | None = None
    p: float = 2.0
    v: float | None = None
    cluster_kernel: Any = None
    n_init: int = 10
    regions: Any = None

    _region_parameter = "regions"

    def _method(self) -> dict[str, Any]:
        endless = isinstance(self.p, float) and self.p == math.inf
        evenness = self.evenness
        if isinstance(evenness, str):
            _params.choice("evenness", evenness, ("hard",))
        elif evenness is not None:
            evenness = _params.number("evenness", evenness)
        return {
            "name": "clmkl",
            "n_clusters": _params.count("n_clusters", self.n_clusters),
            "evenness": evenness,
            "p": "inf" if endless else _params.number("p", self.p),
            "v": None if self.v is None else _params.number("v", self.v),
            "cluster_kernel": _kernel("cluster_kernel", self.cluster_kernel),
            "n_init": _params.count("n_init", self.n_init),
            "regions": self._region_column(),
            "seed": _params.seed(self.random_state),
        }


@dataclass(eq=False, repr=False, kw_only=True)
class CLMKLClassifier(_CLMKL, MKLClassifier):
    """Classifier with kernel weights per region: convex localized MKL.

    Rows are clustered in a kernel's feature space, and a row belongs to every cluster to some degree. Every region has
    its own weights β_j ≥ 0 with ‖β_j‖_p ≤ 1; the problem is convex, and `duality_gap_` certifies the answer.

    The other parameters and the attributes are those of `GMKLClassifier`, but for the shape of `kernel_weights_`.

    Parameters
    ----------
    n_clusters : int, default=3
        Regions that clustering finds.
    evenness : float, "hard" or None, default=None
        How even memberships are on average, from just above 1/n_clusters (hard) to 1 (equal); "hard" is HLMKL, None is
        the middle of the reachable range. With labels in `regions`, None is hard.
    p : float, default=2.0
        Norm of the weights of a region, at least 1; 1 keeps few kernels, ``math.inf`` all.
    v : float or None, default=None
        If given, an elastic net v Σθ + (1−v) Σθ^p ≤ 1 in each region instead.
    cluster_kernel : kernel, int or None, default=None
        What to cluster with: a text or object of the kernel language, the number of a base kernel from 0, or None for
        the average of all.
    n_init : int, default=10
        Starts of the clustering.
    regions : str, int, array (n,), callable or None, default=None
        Regions instead of clustering: a column of X (by name, or number from 0) whose values are the regions; a label
        per training row, new rows then going to the nearest centre; or a callable that maps X to labels (n,) or to
        memberships (n, regions), used for training and for new rows.
    random_state : int, RandomState or None, default=None
        Seed of the clustering; None is 0, so that a fit repeated is the same fit.

    Attributes
    ----------
    kernel_weights_ : array (regions, M), or (machines, regions, M)
        Weights of the normalised kernels in every region.
    region_labels_ : array
        Where `regions` gave labels: the label of each region.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class CLMKLRegressor(_CLMKL, MKLRegressor):
    """Regressor with kernel weights per region: convex localized MKL.

    Parameters and attributes are those of `CLMKLClassifier` and `GMKLRegressor`.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class HLMKLClassifier(CLMKLClassifier):
    """`CLMKLClassifier` with ``evenness="hard"``: every row belongs to one region."""

    evenness: float | str | None = "hard"


@dataclass(eq=False, repr=False, kw_only=True)
class HLMKLRegressor(CLMKLRegressor):
    """`CLMKLRegressor` with ``evenness="hard"``: every row belongs to one region."""

    evenness: float | str | None = "hard"


@dataclass(eq=False, repr=False, kw_only=True)
class _LMKL(_Localized):
    gate: str = "softmax"
    gate_kernel: Any = None
    n_init: int = 1

    def _method(self) -> dict[str, Any]:
        return {
            "name": "lmkl",
            "gate": _params.choice("gate", self.gate, ("softmax", "sigmoid")),
            "gate_kernel": _kernel("gate_kernel", self.gate_kernel),
            "n_init": _params.count("n_init", self.n_init),
            "seed": _params.seed(self.random_state),
        }

    def _has_regions(self) -> bool:
        return False


@dataclass(eq=False, repr=False, kw_only=True)
class LMKLClassifier(_LMKL, MKLClassifier):
    """Classifier with a gate over the kernels that is learned with the machine: localized MKL.

    f(x) = Σ_m η_m(x) ⟨w_m, φ_m(x)⟩ + b, with η a softmax (or a sigmoid per kernel) of functions of a kernel's feature
    space. Not convex: `status_` is "stationary" where the gate has come to rest, `duality_gap_` is NaN.

    The other parameters and the attributes are those of `GMKLClassifier`; `kernel_weights_` is the mean of η over the
    training rows, and `local_weights` gives each row's.

    Parameters
    ----------
    gate : {"softmax", "sigmoid"}, default="softmax"
        Kernels compete for a row, or each is switched on its own.
    gate_kernel : kernel, int or None, default=None
        The kernel of the gate: a text or object of the kernel language ("linear on all" makes the gate linear in the
        features), the number of a base kernel from 0, or None for the average of all.
    n_init : int, default=1
        Starts: equal gates, then random ones; the lowest objective is kept.
    random_state : int, RandomState or None, default=None
        Seed of the random starts.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class LMKLRegressor(_LMKL, MKLRegressor):
    """Regressor with a gate over the kernels that is learned with the machine.

    Parameters and attributes are those of `LMKLClassifier` and `GMKLRegressor`.
    """


class _Grouped(_Localized):
    _region_parameter = "groups"

    @property
    def effective_weights_(self) -> np.ndarray:
        """What a kernel weighs inside a group: the squares of `kernel_weights_`, which enter the kernel on both sides."""
        check_is_fitted(self, "_model")
        return self.kernel_weights_**2


@dataclass(eq=False, repr=False, kw_only=True)
class _GLMKL(_Grouped):
    n_groups: int = 3
    p: float = 4.0
    groups: Any = None
    n_init: int = 1

    def _method(self) -> dict[str, Any]:
        return {
            "name": "glmkl",
            "n_groups": _params.count("n_groups", self.n_groups),
            "p": _params.number("p", self.p),
            "groups": self._region_column(),
            "n_init": _params.count("n_init", self.n_init),
            "seed": _params.seed(self.random_state),
        }


@dataclass(eq=False, repr=False, kw_only=True)
class GLMKLClassifier(_GLMKL, MKLClassifier):
    """Classifier with kernel weights per group that are learned with the machine: ℓp-GLMKL.

    Groups come from k-means with kernels weighted by their centred alignment with y. The kernel between x and z is
    Σ_m β_m^{g(x)} β_m^{g(z)} k_m(x, z), every β^g of unit ℓp norm. Not convex: `status_` is "stationary" where the
    weights have come to rest, `duality_gap_` is NaN.

    The other parameters and the attributes are those of `GMKLClassifier`, but for the shape of `kernel_weights_`.

    Parameters
    ----------
    n_groups : int, default=3
        Groups that clustering finds.
    p : float, default=4.0
        At least 1. Weights enter squared: with one group this is ℓ(p/2)-norm MKL, so that 2 is sparse and below 2 one
        kernel takes all.
    groups : str, int, array (n,), callable or None, default=None
        Groups instead of clustering, as `regions` of `CLMKLClassifier`; every row belongs to one.
    n_init : int, default=1
        Starts: equal weights, then random ones; the lowest objective is kept.
    random_state : int, RandomState or None, default=None
        Seed of the clustering and the random starts.

    Attributes
    ----------
    kernel_weights_ : array (groups, M), or (machines, groups, M)
        β.
    effective_weights_ : array of the same shape
        β², what a kernel weighs inside a group.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class GLMKLRegressor(_GLMKL, MKLRegressor):
    """Regressor with kernel weights per group that are learned with the machine.

    Parameters and attributes are those of `GLMKLClassifier` and `GMKLRegressor`.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class _GSMKL(_Grouped):
    n_groups: int = 3
    groups: Any = None
    n_init: int = 1

    def _method(self) -> dict[str, Any]:
        return {
            "name": "gsmkl",
            "n_groups": _params.count("n_groups", self.n_groups),
            "groups": self._region_column(),
            "n_init": _params.count("n_init", self.n_init),
            "seed": _params.seed(self.random_state),
        }


@dataclass(eq=False, repr=False, kw_only=True)
class GSMKLClassifier(_GSMKL, MKLClassifier):
    """Classifier with softmax kernel weights per group: group-sensitive MKL.

    As `GLMKLClassifier` with p = 1 and groups from k-means on the average kernel.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class GSMKLRegressor(_GSMKL, MKLRegressor):
    """Regressor with softmax kernel weights per group.

    As `GLMKLRegressor` with p = 1 and groups from k-means on the average kernel.
    """
