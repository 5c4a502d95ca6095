"""Kernels as objects, for those who would rather not write the kernel language.

A kernel object is nothing but a piece of that language: a list of them can be given wherever a text can.

>>> str(RBF([0.5, 1, 2]).on("all", "each"))
'rbf(0.5|1|2) on all, each'
>>> Polynomial(2).on(columns=["age", "bmi"])
Polynomial(2).on('cols("age", "bmi")')
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

__all__ = [
    "RBF",
    "Alignment",
    "Callable",
    "Cauchy",
    "Chi2",
    "Gauss",
    "Intersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Mismatch",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "Spectrum",
    "WeightedDegree",
    "WeisfeilerLehman",
    "to_text",
]

#: One number, several, or a text such as ``"2^-3..2^6"`` or ``"auto"``.
Numbers = float | Sequence[float] | str

K = TypeVar("K", bound="Kernel")


@dataclass(frozen=True, repr=False)
class Kernel:
    """A kernel function, or several that differ in one number, and the features they see."""

    #: The word of the kernel language that a call begins with.
    _word: ClassVar[str]

    scopes: tuple[str, ...] = field(default=(), kw_only=True)

    def on(self: K, *scopes: str, columns: Iterable[str | int] | None = None, view: str | None = None) -> K:
        """The same kernel on these features.

        Parameters
        ----------
        *scopes : str
            Scopes of the kernel language: ``"all"`` (together), ``"each"`` (one kernel per feature),
            ``"cols(1-3)"``, ``"bands(4)"``, ``"view(name)"``.
        columns : iterable of str or int
            Columns by name, or by number counted from 1.
        view : str
            A view by name.
        """
        found = list(scopes)
        if columns is not None:
            found.append(f"cols({', '.join(_column(c) for c in columns)})")
        if view is not None:
            found.append(f"view({_quoted(view)})")
        return replace(self, scopes=tuple(found))

    def _call(self) -> tuple[str, list[Any]]:
        """The word of the language and its arguments: the fields in their order, without those that are None."""
        values = (getattr(self, one.name) for one in fields(self) if one.name != "scopes")
        return self._word, [value for value in values if value is not None]

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name != "scopes" and not callable(value):
                object.__setattr__(self, one.name, _frozen(value))

    def _arguments(self) -> list[str]:
        """Constructor arguments that differ from their defaults."""
        given = ((one, getattr(self, one.name)) for one in fields(self) if one.name != "scopes")
        told = [(one.name, one.default is MISSING, value) for one, value in given if value != one.default]
        return [repr(value) if required else f"{name}={value!r}" for name, required, value in told]

    def __str__(self) -> str:
        word, args = self._call()
        call = f"{word}({', '.join(_numbers(a) for a in args)})" if args else word
        return f"{call} on {', '.join(self.scopes)}" if self.scopes else call

    def __repr__(self) -> str:
        args = ", ".join(self._arguments())
        on = f".on({', '.join(repr(s) for s in self.scopes)})" if self.scopes else ""
        return f"{type(self).__name__}({args}){on}"


@dataclass(frozen=True, repr=False)
class Linear(Kernel):
    """⟨x, z⟩."""

    _word = "linear"


@dataclass(frozen=True, repr=False)
class Polynomial(Kernel):
    """(⟨x, z⟩ + c)^degree."""

    _word = "poly"

    degree: Numbers
    c: float = 1

    def _call(self) -> tuple[str, list[Any]]:
        return self._word, [self.degree] if self.c == 1 else [self.degree, self.c]


@dataclass(frozen=True, repr=False)
class RBF(Kernel):
    """exp(−‖x − z‖² / (2 width²)); ``"auto"`` is five widths around the median distance, ``"deviation"`` the standard deviation."""

    _word = "rbf"

    width: Numbers


@dataclass(frozen=True, repr=False)
class Laplacian(Kernel):
    """exp(−‖x − z‖₁ / width)."""

    _word = "laplace"

    width: Numbers


@dataclass(frozen=True, repr=False)
class Cauchy(Kernel):
    """1 / (1 + ‖x − z‖² / width²), with tails far longer than those of `RBF`; ``"auto"`` is five widths around the median distance."""

    _word = "cauchy"

    width: Numbers


@dataclass(frozen=True, repr=False)
class Gauss(Kernel):
    """exp(−distance / width) with distance ``"l1"``, ``"l2"``, ``"chi2"`` or ``"hellinger"``; ``"auto"`` is the mean distance."""

    _word = "gauss"

    distance: str
    width: Numbers = "auto"


@dataclass(frozen=True, repr=False)
class Chi2(Kernel):
    """exp(−gamma Σ (x − z)² / (x + z)), with ``gamma="auto"`` one over the mean distance; Σ 2xz / (x + z) without gamma.

    For numbers that are not negative.
    """

    _word = "chi2"

    gamma: Numbers | None = None


@dataclass(frozen=True, repr=False)
class Intersection(Kernel):
    """Σ min(x, z), for numbers that are not negative."""

    _word = "intersection"


@dataclass(frozen=True, repr=False)
class Sigmoid(Kernel):
    """tanh(slope ⟨x, z⟩ + offset); refused where it is not positive semidefinite."""

    _word = "sigmoid"

    slope: float
    offset: float = 0


@dataclass(frozen=True, repr=False)
class Spectrum(Kernel):
    """Words of k letters that two sequences have in common.

    ``alphabet`` is ``"dna"``, ``"rna"``, ``"protein"`` or ``"free"``; left out, the letters decide.
    """

    _word = "spectrum"

    k: Numbers
    alphabet: str | None = None


@dataclass(frozen=True, repr=False)
class Mismatch(Kernel):
    """Words of k letters in common up to m mismatches; alphabets as for `Spectrum`, without ``"free"``."""

    _word = "mismatch"

    k: Numbers
    m: int
    alphabet: str | None = None


@dataclass(frozen=True, repr=False)
class WeightedDegree(Kernel):
    """Positions at which the same `degree` letters stand, up to `shift` positions apart.

    One kernel per degree; with ``sum=True`` the classical weighted sum of all degrees up to each. Alphabets as for `Spectrum`.
    """

    degree: Numbers
    shift: int = 0
    sum: bool = False
    alphabet: str | None = None

    def _call(self) -> tuple[str, list[Any]]:
        shift = [self.shift] if self.shift else []
        return "wdsum" if self.sum else "wd", [self.degree, *shift, *_given(self.alphabet)]


@dataclass(frozen=True, repr=False)
class Alignment(Kernel):
    """⟨φ(x), φ(z)⟩ with φ the scores of local alignment with at most 512 training sequences.

    ``scoring`` is ``"blosum62"`` or ``"pam50"``; a gap of g letters costs ``open + (g − 1) * extend``.
    """

    _word = "alignment"

    scoring: str = "blosum62"
    open: int = 11
    extend: int = 1


@dataclass(frozen=True, repr=False)
class WeisfeilerLehman(Kernel):
    """Subtrees that two labelled graphs have in common, up to `rounds` steps deep.

    Graphs are texts: ``{"labels": ["C", "O"], "edges": [[0, 1]]}`` or ``C O; 0-1``.
    """

    _word = "wl"

    rounds: Numbers


@dataclass(frozen=True, repr=False)
class Precomputed(Kernel):
    """X holds ready-made kernel values, (n, n) or (n, n, M) in `fit` and (n_new, n, M) later: the text ``"precomputed"``."""

    _word = "precomputed"


@dataclass(frozen=True, repr=False)
class Callable(Kernel):
    """Values that a function computes: ``function(X, Z)`` is the array of k(x, z), shape (rows of X, rows of Z).

    X and Z are what the estimator was given, unchanged; the training rows are kept for predictions, and a saved model does not hold the
    function: it takes kernel values.
    """

    function: Any
    name: str | None = None

    def __call__(self, X: Any, Z: Any) -> Any:
        return self.function(X, Z)

    @property
    def label(self) -> str:
        """What stands in `kernel_names_`."""
        return self.name or _called(self.function)

    def _arguments(self) -> list[str]:
        return [_called(self.function), *([] if self.name is None else [f"name={self.name!r}"])]

    def _call(self) -> tuple[str, list[Any]]:
        raise TypeError("a kernel that is a Python function has no text in the kernel language")


def to_parts(kernels: Any) -> list[str | Callable] | None:
    """Texts and functions in turn, where there is a function among `kernels`; else None."""
    parts = list(kernels) if isinstance(kernels, (list, tuple)) else [kernels]
    found: list[str | Callable] = []
    for part in parts:
        if callable(part) and not isinstance(part, Kernel):
            part = Callable(part)
        found.append(part if isinstance(part, Callable) else to_text(part))
    return found if any(isinstance(part, Callable) for part in found) else None


def to_text(kernels: str | Kernel | Iterable[str | Kernel]) -> str:
    """The kernel language for a text, a kernel object, or a list of either."""
    if isinstance(kernels, (str, Kernel)):
        return str(kernels)
    parts = list(kernels) if isinstance(kernels, Iterable) else [None]
    if not parts or not all(isinstance(part, (str, Kernel)) for part in parts):
        raise TypeError(
            "parameter `kernels` must be a text of the kernel language, a list of mercer.kernels objects, "
            f'a function of two sets of rows, or "precomputed", got {kernels!r}'
        )
    return "; ".join(str(part) for part in parts)


def _called(function: Any) -> str:
    """The name a function was defined under, without the functions around it."""
    name: str = getattr(getattr(function, "func", function), "__qualname__", type(function).__name__)
    return name.rsplit("<locals>.", 1)[-1].replace("<lambda>", "lambda")


def _given(word: str | None) -> list[str]:
    return [] if word is None else [word]


def _frozen(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    # An array's elements as plain numbers, so that `repr` is a constructor.
    return tuple(v.item() if hasattr(v, "item") else v for v in value) if isinstance(value, Iterable) else value.item()


def _numbers(value: Numbers) -> str:
    if isinstance(value, str):
        return value
    values = value if isinstance(value, Sequence) else (value,)
    return "|".join(repr(float(v)).removesuffix(".0") for v in values)


def _column(name: str | int) -> str:
    return _quoted(name) if isinstance(name, str) else str(int(name))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
