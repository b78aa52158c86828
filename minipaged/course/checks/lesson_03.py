"""Lesson 03: the block table, writing to and reading from the pool, the self-check questions."""

from __future__ import annotations

from minipaged.course.checks.lesson_03_answers import CHECK as ANSWERS
from minipaged.course.checks.lesson_03_table import CHECK as TABLE
from minipaged.course.checks.lesson_03_tensors import GATHER, WRITE

CHECKS = {"03.1": TABLE, "03.2": WRITE, "03.3": GATHER, "03.4": ANSWERS}
