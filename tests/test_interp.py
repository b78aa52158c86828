"""Launch tests/interp, Triton's interpreter, as a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("interp")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton has wheels for Linux only"
)


def run(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pytest", str(FOLDER), "-q", "-n0", "-p", "no:cacheprovider"]
    environ = {key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"}
    return subprocess.run(
        [*command, *arguments], capture_output=True, encoding="utf-8", env=environ
    )


def assert_passes(done: subprocess.CompletedProcess) -> None:
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert " passed" in done.stdout


def test_the_kernels_in_the_interpreter():
    assert_passes(run())


@pytest.mark.slow
def test_the_kernels_in_every_shape():
    assert_passes(run("-m", "slow"))


def test_the_plain_command_does_not_collect_the_folder():
    """The first import of triton decides for interpreter or compiler: not here, and not now."""
    tests = FOLDER.parent
    flags = ["--collect-only", "-q", f"--ignore-glob={tests / 'test_*.py'}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", str(tests), "-n0", *flags, "-p", "no:cacheprovider"],
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout + done.stderr
