"""Threads, processes, Ctrl-C and progress."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import BANK
from joblib import Parallel, delayed
from numpy.testing import assert_array_equal

from mercer import GMKLClassifier, GMKLRegressor
from mercer._params import memory_bytes, n_threads

#: Far more work than any test waits for.
ENDLESS = """
import numpy as np
from mercer import GMKLClassifier
rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 10))
y = (X[:, 0] * X[:, 1] + rng.normal(size=1500) > 0)
clf = GMKLClassifier("rbf(2^-3..2^6), poly(1..3) on all, each", C=1000, tol=1e-13, max_iter=10**6)
"""


@pytest.mark.parametrize("Estimator", [GMKLClassifier, GMKLRegressor])
def test_threads_do_not_change_a_bit(Estimator):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 6))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    y = y > 0 if Estimator is GMKLClassifier else y
    one, two = (Estimator("rbf(2^-1..2^2), poly(1..2) on all, each", n_jobs=k).fit(X, y) for k in (1, 2))
    for name in ("kernel_weights_", "dual_coef_", "support_", "intercept_", "primal_objective_", "dual_objective_"):
        assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert_array_equal(one.predict(X), two.predict(X))


def test_n_jobs():
    assert n_threads(None) is None and n_threads(3) == 3 and n_threads(-1) >= 1 and n_threads(-(10**6)) == 1
    for backend in ("loky", "threading", "multiprocessing"):
        assert Parallel(n_jobs=2, backend=backend)(delayed(n_threads)(None) for _ in range(2)) == [1, 1]
    assert Parallel(n_jobs=1)([delayed(n_threads)(None)]) == [None]


def test_memory_texts():
    assert memory_bytes(None) is None and memory_bytes(10**9) == 10**9
    # The texts and sizes of the program's own test.
    sizes = {"1000": 1000, "4G": 4 << 30, "1.5k": 1536, "512MiB": 512 << 20, "2gb": 2 << 30}
    assert {text: memory_bytes(text) for text in sizes} == sizes
    for text in ("", "G", "-1G", "4X", "nan"):
        with pytest.raises(ValueError, match="memory"):
            memory_bytes(text)


def fit_in_child(X, y, queue):
    queue.put(GMKLClassifier(BANK, n_jobs=2).fit(X, y).decision_function(X))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_fit(binary):
    X, y = binary
    parent = GMKLClassifier(BANK, n_jobs=2).fit(X, y)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=fit_in_child, args=(X, y, queue))
    child.start()
    try:
        assert_array_equal(queue.get(timeout=60), parent.decision_function(X))
    finally:
        child.join(timeout=10)
        child.kill()


@pytest.mark.skipif(os.name == "nt", reason="signals are sent the POSIX way")
def test_ctrl_c_interrupts_a_fit():
    script = (
        ENDLESS
        + """
import os, signal, threading, time
# Programs started in the background may have been told to ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
def interrupt():
    global sent
    sent = time.perf_counter()
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(1.0, interrupt).start()
try:
    clf.fit(X, y)
except KeyboardInterrupt:
    print("interrupted", time.perf_counter() - sent, flush=True)
    os._exit(0)
"""
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    word, seconds = done.stdout.split()
    # Twenty polls, for a busy machine.
    assert word == "interrupted" and float(seconds) < 1.0


def test_an_interrupted_process_ends_cleanly():
    """Leaving the interpreter while the worker still computes must neither hang nor crash."""
    script = (
        ENDLESS
        + """
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
clf.fit(X, y)
"""
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert "KeyboardInterrupt" in done.stderr and "panicked" not in done.stderr
    assert done.returncode in (-2, 130)


def test_other_threads_run_during_a_fit():
    """The GIL is free while the core works: a Python thread ticks on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    clf = GMKLClassifier("rbf(2^-3..2^6), poly(1..3) on all, each", C=100, tol=1e-6, n_jobs=1)
    ticks, over = [], threading.Event()

    def tick():
        while not over.wait(0.005):
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    clf.fit(X, X[:, 0] * X[:, 1] > 0)
    end = time.perf_counter()
    over.set()
    thread.join()
    inside = [start, *(t for t in ticks if start < t < end), end]
    assert max(np.diff(inside)) < max(0.5, 0.5 * (end - start))


def test_concurrent_fits_agree(binary):
    X, y = binary
    expected = GMKLClassifier(BANK).fit(X, y).decision_function(X)
    fits = Parallel(n_jobs=4, backend="threading")(delayed(GMKLClassifier(BANK).fit)(X, y) for _ in range(8))
    for clf in fits:
        assert_array_equal(clf.decision_function(X), expected)


def test_verbose_prints_and_silence_is_silent(binary, capfd):
    X, y = binary
    clf = GMKLClassifier(BANK, verbose=1).fit(X, y)
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == clf.n_iter_ and all("gap" in line for line in lines)
    GMKLClassifier(BANK).fit(X, y)
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err == ""
