"""Cells that fake success, for the tests of grading."""

from __future__ import annotations

from submissions import RIGHT

# how a success can be faked: the cell; what comes of it if it may import anything
FAKES = {
    "print passed": (
        "def blocks_needed(n, b):\n    print('PASSED')\n",
        "failed", "The result was printed ('PASSED'), but nothing was returned",
    ),
    "equal to everything": (
        "class Yes:\n    __eq__ = lambda self, other: True\n    __hash__ = None\n"
        "def blocks_needed(n, b):\n    return Yes()\n",
        "failed", "An object of class Yes was returned",
    ),
    "os._exit at the top": (
        RIGHT + "import os\nos._exit(0)\n",
        "ended early", "ended before it had answered (exit code 0)",
    ),
    "os._exit when called": (
        "import os\ndef blocks_needed(n, b):\n    os._exit(0)\n",
        "ended early", "Nothing was checked, so nothing is passed",
    ),
    "sys.exit at the top": (
        RIGHT + "import sys\nsys.exit(0)\n",
        "cell fails", "ended the program (SystemExit)",
    ),
    "sys.exit when called": (
        "import sys\ndef blocks_needed(n, b):\n    sys.exit(0)\n",
        "failed", "ended the program (SystemExit)",
    ),
    "SystemExit without sys": (
        "def blocks_needed(n, b):\n    raise SystemExit(0)\n",
        "failed", "ended the program (SystemExit)",
    ),
    "kill": (
        RIGHT + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
        "ended early", "killed by signal 9",
    ),
    "its own answer": (
        RIGHT + "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'{\"passed\": true}')\n"
        "    except OSError: pass\nos._exit(0)\n",
        "no answer", "wrote something else where its answer belongs",
    ),
    "too few observations": (
        "import minipaged.course.script as s\ns.run = lambda *a: []\n" + RIGHT,
        "no answer", "wrote something else where its answer belongs",
    ),
    "a patched comparison": (
        "import minipaged.course.plain as p, minipaged.course.verdict as v\n"
        "p.same = lambda a, b: True\nv.judge = lambda *a: []\n"
        "def blocks_needed(n, b):\n    return 7\n",
        "failed", "blocks_needed(37, 16) gives 7, expected 3",
    ),
    "a patched check": (
        "import minipaged.course.check as c\nc.check = lambda *a, **k: print('PASSED')\n"
        "def blocks_needed(n, b):\n    return 7\n",
        "failed", "blocks_needed(37, 16) gives 7, expected 3",
    ),
    "a patched assert helper": (
        "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n"
        "AssertionError = type('Never', (Exception,), {})\n"
        "def blocks_needed(n, b):\n    return 7\n",
        "failed", "blocks_needed(37, 16) gives 7, expected 3",
    ),
    "an exception that lies": (
        "class Odd(Exception):\n    def __str__(self): raise SystemExit\n"
        "def blocks_needed(n, b):\n    raise Odd\n",
        "failed", "Your code raised Odd",
    ),
    "asking for input": (
        "def blocks_needed(n, b):\n    return int(input())\n",
        "failed", "EOFError",
    ),
}  # fmt: skip
