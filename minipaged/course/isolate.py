"""A worker's own namespaces on Linux: for its processes, and for its network, which is empty.

A process group ends with its children only as long as none of them leaves it; a process namespace
ends with all that was ever started in it. Nothing else is cut off: files are as they were. Run as a
script this module tries out whether the system offers it. Standard library only.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# flags of unshare(2)
_NEW_USER, _NEW_PROCESSES, _NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
# Without a user namespace only root may, and keeps its powers. Some systems grant no network.
_WAYS = (
    _NEW_USER | _NEW_PROCESSES | _NEW_NETWORK,
    _NEW_USER | _NEW_PROCESSES,
    _NEW_PROCESSES | _NEW_NETWORK,
    _NEW_PROCESSES,
)
_PROBE_SECONDS = 10.0


@functools.cache
def available() -> bool:
    """Whether `enter` works here. Tried once, in a process of its own: about 30 ms."""
    if sys.platform != "linux":
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            tried = subprocess.run(
                [sys.executable, "-I", "-S", __file__],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_PROBE_SECONDS,
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return tried.returncode == 0 and Path(folder, "probe").exists()


def enter() -> None:
    """Go on as a new process in new namespaces; the old one waits for it and ends as it does.

    A child that a signal ended is passed on as exit code 128 + signal. OSError if the system
    refuses. Call it before there are threads. Cost: 5 ms.
    """
    _unshare()
    # The first process of a namespace ends all others with it, and cannot be signalled by them.
    # It only waits: a learner's code that kills itself must find a process that dies of it.
    _leave_to_child()
    _leave_to_child()


def _unshare() -> None:
    uid, gid = os.geteuid(), os.getegid()
    code = 0
    for flags in _WAYS:
        code = _try(flags)
        if code == 0:
            if flags & _NEW_USER:
                _map_user(uid, gid)
            return
    raise OSError(code, os.strerror(code))


def _try(flags: int) -> int:
    """unshare(2), which Python has as os.unshare from 3.12 on; the error number, 0 if none."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    return ctypes.get_errno() if libc.unshare(flags) else 0


def _map_user(uid: int, gid: int) -> None:
    """Stay who we are: a user without a name in the namespace could not make files."""
    own = Path("/proc/self")
    with contextlib.suppress(FileNotFoundError):  # Linux before 3.19
        (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"{uid} {uid} 1")
    (own / "gid_map").write_text(f"{gid} {gid} 1")


def _leave_to_child() -> None:
    """Fork and return in the child; the parent takes all orphans in until the child has ended."""
    child = os.fork()
    if child == 0:
        return
    ended, status = 0, 0
    while ended != child:
        ended, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    enter()
    Path("probe").touch()
    sys.exit(os.getpid() != 2)
