"""Kernels as objects, for those who would rather not write the kernel language.

A kernel object is nothing but a piece of that language: a list of them can be given wherever a text can.

>>> str(RBF([0.5, 1, 2]).on("all", "each"))
'rbf(0.5|1|2) on all, each'
>>> Polynomial(2).on(columns=["age", "bmi"])
Polynomial(2).on('cols("age", "bmi")')
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

__all__ = ["RBF", "Kernel", "Laplacian", "Linear", "Polynomial", "to_text"]

#: One number, several, or a text such as ``"2^-3..2^6"`` or ``"auto"``.
Numbers = float | Sequence[float] | str

K = TypeVar("K", bound="Kernel")


@dataclass(frozen=True, repr=False)
class Kernel:
    """A kernel function, or several that differ in one number, and the features they see."""

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
        """The word of the language and the arguments that differ from their defaults."""
        raise NotImplementedError

    def __str__(self) -> str:
        word, args = self._call()
        call = f"{word}({', '.join(_numbers(a) for a in args)})" if args else word
        return f"{call} on {', '.join(self.scopes)}" if self.scopes else call

    def __repr__(self) -> str:
        args = ", ".join(repr(a) for a in self._call()[1])
        on = f".on({', '.join(repr(s) for s in self.scopes)})" if self.scopes else ""
        return f"{type(self).__name__}({args}){on}"


@dataclass(frozen=True, repr=False)
class Linear(Kernel):
    """⟨x, z⟩."""

    def _call(self) -> tuple[str, list[Any]]:
        return "linear", []


@dataclass(frozen=True, repr=False)
class Polynomial(Kernel):
    """(⟨x, z⟩ + c)^degree."""

    degree: Numbers
    c: float = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", _frozen(self.degree))

    def _call(self) -> tuple[str, list[Any]]:
        return "poly", [self.degree] if self.c == 1 else [self.degree, self.c]


@dataclass(frozen=True, repr=False)
class RBF(Kernel):
    """exp(−‖x − z‖² / (2 width²))."""

    width: Numbers

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", _frozen(self.width))

    def _call(self) -> tuple[str, list[Any]]:
        return "rbf", [self.width]


@dataclass(frozen=True, repr=False)
class Laplacian(Kernel):
    """exp(−‖x − z‖₁ / width)."""

    width: Numbers

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", _frozen(self.width))

    def _call(self) -> tuple[str, list[Any]]:
        return "laplace", [self.width]


def to_text(kernels: str | Kernel | Iterable[str | Kernel]) -> str:
    """The kernel language for a text, a kernel object, or a list of either."""
    if isinstance(kernels, (str, Kernel)):
        return str(kernels)
    parts = list(kernels) if isinstance(kernels, Iterable) else [None]
    if not parts or not all(isinstance(part, (str, Kernel)) for part in parts):
        raise TypeError(
            "parameter `kernels` must be a text of the kernel language, a list of mercer.kernels objects, "
            f'or "precomputed", got {kernels!r}'
        )
    return "; ".join(str(part) for part in parts)


def _frozen(value: Numbers) -> Any:
    if isinstance(value, (str, int, float)):
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
