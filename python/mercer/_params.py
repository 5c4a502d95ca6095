"""Constructor parameters to the core's request: types and names are checked here, ranges by the core."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import cpu_count
from joblib.parallel import get_active_backend
from sklearn.utils import check_random_state

#: Values of the parameter `normalize`.
NORMALIZATIONS = ("multiplicative", "trace", "spherical", "center", None)

#: Powers of 1024, as in the program, whether they are written G, GB or GiB.
_UNITS = {unit: 1024**power for power, unit in enumerate(("", "k", "m", "g", "t"))}


#: Threads at most, as in the program.
MOST_THREADS = 4096


def plain(value: Any) -> Any:
    """A value as messages show it: NumPy's numbers and texts as Python's own."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(one) for one in value]
    return value


def number(name: str, value: Any) -> float:
    """A finite real number."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"parameter `{name}` must be a number, got {plain(value)!r}")
    if not math.isfinite(value):
        raise ValueError(f"parameter `{name}` must be finite, got {plain(value)!r}")
    return float(value)


def number_or_auto(name: str, value: Any, default: float) -> tuple[float, bool]:
    """A finite real number, and whether it is left to the fit: then the number given is `default`."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f'parameter `{name}` must be a number or "auto", got {plain(value)!r}')
        return default, True
    return number(name, value), False


def price(value: Any) -> tuple[float, dict[str, bool]]:
    """C, and whether cross-validation or the scale of the kernels says it: then the number is of no account."""
    if isinstance(value, str):
        if value not in ("auto", "scale"):
            raise ValueError(f'parameter `C` must be a number, "auto" or "scale", got {value!r}')
        return 1.0, {"c": value == "auto", "scale": value == "scale"}
    return number("C", value), {"c": False, "scale": False}


def numbers(name: str, values: Any) -> list[float] | None:
    """None, or finite real numbers."""
    if values is None:
        return None
    if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"parameter `{name}` must be a list of numbers or None, got {plain(values)!r}")
    return [number(name, value) for value in values]


def seconds(name: str, value: Any) -> float | None:
    """None, or a positive number."""
    if value is None:
        return None
    found = number(name, value)
    if found <= 0:
        raise ValueError(f"parameter `{name}` must be a positive number of seconds or None, got {plain(value)!r}")
    return found


def function(name: str, value: Any) -> Any:
    """None, or something that can be called."""
    if value is not None and not callable(value):
        raise TypeError(f"parameter `{name}` must be a function or None, got {plain(value)!r}")
    return value


def count(name: str, value: Any) -> int:
    """An integer of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"parameter `{name}` must be an integer, got {plain(value)!r}")
    if int(value) < 1:
        raise ValueError(f"parameter `{name}` must be at least 1, got {plain(value)!r}")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"parameter `{name}` must be True or False, got {plain(value)!r}")
    return bool(value)


def seed(random_state: Any) -> int:
    """A seed for the core; None is 0, so that a fit repeated is the same fit."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        if int(random_state) < 0:
            raise ValueError(f"parameter `random_state` must not be negative, got {plain(random_state)!r}")
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31))


def choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """One of a few values."""
    if not any(value is c or (isinstance(value, str) and value == c) for c in choices):
        raise ValueError(f"parameter `{name}` must be one of {', '.join(map(repr, choices))}, got {plain(value)!r}")
    return value


def text(name: str, value: Any) -> str:
    """A text; None is an empty one."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"parameter `{name}` must be a text or None, got {plain(value)!r}")
    return value or ""


def approximation(value: Any) -> str:
    """What stands in for every kernel: None, ``"nystrom(200)"`` or ``"rff(500)"``."""
    told = text("approx", value) or "none"
    if not re.fullmatch(r"\s*(none|(nystrom|rff)\s*\(\s*[0-9]+\s*\))\s*", told):
        raise ValueError(f'parameter `approx` must be "nystrom(r)", "rff(r)" or None, got {plain(value)!r}')
    return told


def memory_bytes(value: Any) -> int | None:
    """A memory budget: None, a number of bytes, or a text such as ``"4G"`` or ``"512MiB"``."""
    if value is None:
        return None
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*(?:([kmgt])i?)?b?\s*", value.lower())
        try:
            if match:
                return int(float(match[1]) * _UNITS[match[2] or ""])
        except ValueError:
            pass
        raise ValueError(f'parameter `memory` must be bytes or a text such as "4G", got {plain(value)!r}')
    return count("memory", int(number("memory", value)))


def class_weights(value: Any, classes: list[Any]) -> Any:
    """None, "balanced", or a factor per class label; in the core's words."""
    if value is None:
        return "none"
    if not isinstance(value, Mapping):
        return choice("class_weight", value, ["balanced", None])
    unknown = [label for label in value if label not in classes]
    if unknown:
        raise ValueError(f"parameter `class_weight` names {plain(unknown)!r}, but the classes are {plain(classes)!r}")
    named = ((str(classes[classes.index(label)]), w) for label, w in value.items())
    return {"given": [[name, number("class_weight", w)] for name, w in named]}


def n_threads(n_jobs: Any) -> int | None:
    """Threads for `n_jobs`; None is one per core.

    joblib already keeps every core busy with its workers, so a fit inside one takes a single thread unless told
    otherwise. Negative counts follow scikit-learn: -1 is all cores, -2 all but one.
    """
    if n_jobs is None:
        backend, _ = get_active_backend()
        return 1 if (getattr(backend, "nesting_level", 0) or 0) > 0 else None
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool):
        raise TypeError(f"parameter `n_jobs` must be an integer or None, got {plain(n_jobs)!r}")
    jobs = int(n_jobs)
    if jobs == 0:
        raise ValueError("parameter `n_jobs` must not be 0; None or -1 means all cores")
    if jobs > MOST_THREADS:
        raise ValueError(f"parameter `n_jobs` must be at most {MOST_THREADS}, got {jobs}")
    if jobs > 0:
        return jobs
    return min(MOST_THREADS, max(1, cpu_count() + 1 + jobs))
