"""What the scripts of the papers share: where data lie, and a got.csv that can be continued."""

import csv
import os
import time
from pathlib import Path

#: The folder with the data sets.
DATA = Path(os.environ.get("MERCER_DATA_DIR", Path(__file__).parents[1] / ".." / "shared" / "data"))


class Results:
    """A got.csv, one row at a time. `keys` of its columns say what a row is about: rows that are there are not made again.

    To make them again, delete them (or the file).
    """

    def __init__(self, path, columns, keys, minutes=float("inf")):
        self.path, self.columns, self.keys = Path(path), columns, [columns.index(k) for k in keys]
        self.end = time.time() + 60 * minutes
        self.known = set()
        if not self.path.exists():
            self._write(columns)
        with self.path.open(newline="") as f:
            head, *rows = csv.reader(f)
        if head != list(columns):
            raise SystemExit(f"{path} has columns {head}, expected {list(columns)}: move it away")
        self.known.update(self._key(row) for row in rows)

    def _key(self, row):
        return tuple(str(row[k]) for k in self.keys)

    def _write(self, row):
        with self.path.open("a", newline="") as f:
            csv.writer(f, lineterminator="\n").writerow(row)

    def has(self, *key):
        return tuple(map(str, key)) in self.known

    def over(self):
        """Is the time up? Asked before every new row."""
        return time.time() > self.end

    def add(self, *row):
        self._write(row)
        self.known.add(self._key(row))
        print(*row, flush=True)
