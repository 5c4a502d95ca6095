"""The page in a real browser: names, headings, contrast, sorting, no request, no overflow.

Says loudly where there is no browser. `MERCER_CHROMIUM` names the program; otherwise the usual names are looked for.
"""

import json
import os
import select
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest

import mercer

fcntl = pytest.importorskip("fcntl")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless_shell")
CHROMIUM = os.environ.get("MERCER_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
SCRIPT = Path(__file__).with_name("accessibility.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, "yes", "no")
    methods = "l1, gmkl(v=0.5), clmkl, vcmkl"
    found = mercer.compare(X, y, methods, kernels="rbf(1|3), linear on all, each", grid="C=1|10", repeats=4)
    path = tmp_path_factory.mktemp("page") / "page.html"
    found.report(path)
    return path


class Browser:
    """A headless Chromium spoken to over two pipes, in its own protocol: JSON, each message ended by a zero byte."""

    def __init__(self, folder):
        (ours, self._out), (self._in, theirs) = os.pipe(), os.pipe()
        # The program reads from 3 and writes to 4: out of the way first, then into place.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (ours, theirs)]

        def place():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        switches = ("headless", "no-sandbox", "no-zygote", "disable-gpu", "single-process", "no-first-run")
        flags = [f"--{s}" for s in (*switches, "remote-debugging-pipe", "disable-dev-shm-usage")]
        self._process = subprocess.Popen(
            [CHROMIUM, *flags, f"--user-data-dir={folder / 'profile'}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=place,
        )
        for fd in (ours, theirs, *high):
            os.close(fd)
        self._count, self._rest, self.requests = 0, b"", []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = None
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Page.enable")
        self.ask("Network.enable")

    def ask(self, method, **params):
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next()
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def next(self, seconds=60):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], seconds)
            assert ready, f"the browser said nothing for {seconds} s"
            more = os.read(self._in, 65536)
            assert more, "the browser has gone"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message

    def look(self, page, width, dark):
        """What the script finds in the page at this width."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.requests.clear()
        self.ask("Page.navigate", url=page.as_uri())
        while self.next().get("method") != "Page.loadEventFired":
            pass
        self.ask("Runtime.evaluate", expression=SCRIPT)
        found = self.ask("Runtime.evaluate", expression="document.getElementById('findings').textContent")
        return json.loads(found["result"]["value"])

    def close(self):
        os.close(self._out)
        os.close(self._in)
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        warnings.warn("NO BROWSER: the page was not looked at; install chromium or set MERCER_CHROMIUM", stacklevel=1)
        pytest.skip("NO BROWSER FOUND: install chromium or set MERCER_CHROMIUM")
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (1200, True), (360, True)])
def test_the_page_is_accessible_and_asks_for_nothing(page, browser, width, dark):
    found = browser.look(page, width, dark)
    assert found["wrong"] == []
    assert found["requests"] == [] and browser.requests == [page.as_uri()]
    assert found["sorted"] is True and found["dark"] is dark and found["width"] == width


def test_the_check_bites(browser, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!doctype html><html><body><h1>a</h1><h3>b</h3><p style='color:#999;background:#fff'>pale</p><svg></svg>"
        "<table><tr><th>x</th></tr></table><div style='width:3000px'>wide</div></body></html>",
        encoding="utf-8",
    )
    wrong = " ".join(browser.look(bad, 800, False)["wrong"])
    for part in ("no language", "no title", "no main", "skipped", "contrast", "drawing", "scope", "wider"):
        assert part in wrong, part
