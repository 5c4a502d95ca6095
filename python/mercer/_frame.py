"""The data frame that `compare` returns. Imported only where pandas is."""

from __future__ import annotations

import json
import os
from typing import Any

import pandas as pd

from mercer._compare import write_page


class ComparisonFrame(pd.DataFrame):
    """One row per method: the metric with its interval, kernels, gap, seconds, difference from equal weights, p values.

    A copy or a selection is a plain data frame.
    """

    _metadata = ("_json", "_facts")

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    @classmethod
    def from_json(cls, text: str, facts: list[tuple[str, str]]) -> ComparisonFrame:
        """From what the native half, or the program with ``--json``, says."""
        found = json.loads(text)

        def row(line: dict[str, Any]) -> dict[str, Any]:
            low, high = line["interval"] or (None, None)
            versus = line["versus_uniform"] or {}
            return {
                "method": line["method"],
                "mean": line["mean"],
                "sd": line["sd"],
                "low": low,
                "high": high,
                "kernels": line["selected"],
                "carrying": line.get("carrying"),
                "of": line["total"],
                "gap": line["gap"],
                "seconds": line["seconds"][0],
                "search_seconds": line["seconds"][1],
                "difference": versus.get("difference"),
                "p": line["adjusted"],
                "p_corrected": versus.get("corrected"),
                "p_t_test": versus.get("t_test"),
                "p_wilcoxon": versus.get("wilcoxon"),
                "chosen": dict(line["chosen"]),
            }

        frame = cls([row(line) for line in found["lines"]]).set_index("method")
        numbers = frame.columns.drop("chosen")
        frame = cls(frame.astype(dict.fromkeys(numbers, float)))
        object.__setattr__(frame, "_json", text)
        object.__setattr__(frame, "_facts", facts)
        frame.attrs["metric"] = found["metric"]
        frame.attrs["higher_is_better"] = found["higher_is_better"]
        frame.attrs["verdict"] = found["verdict"]
        frame.attrs["interchangeable"] = found["interchangeable"]
        return frame

    @property
    def verdict(self) -> str:
        """What follows, in plain words."""
        return " ".join(self.attrs["verdict"])

    def runs(self) -> pd.DataFrame:
        """One row per method and split."""
        keys = ("method", "split", "score", "selected", "total", "gap", "status", "seconds", "search_seconds", "error")
        runs = json.loads(self._json)["runs"]
        return pd.DataFrame([{k: r[k] for k in keys} | {"chosen": dict(r["chosen"])} for r in runs])

    def weights(self) -> pd.DataFrame:
        """One row per method and kernel that ever had a weight: its mean share, the interval, how often it had one."""
        rows = []
        for method in json.loads(self._json)["stability"]:
            for k in method["kernels"]:
                low, high = k["interval"] or (None, None)
                rows.append((method["method"], k["kernel"], k["mean"], low, high, k["frequency"]))
        return pd.DataFrame(rows, columns=["method", "kernel", "share", "low", "high", "frequency"])

    def tests(self) -> pd.DataFrame:
        """p of the corrected resampled t-test between every two methods."""
        return pd.DataFrame(json.loads(self._json)["between"], index=self.index, columns=list(self.index), dtype=float)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the self-contained HTML page."""
        write_page(self._json, path, self._facts)
