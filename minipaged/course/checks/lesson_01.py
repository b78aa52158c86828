"""Lesson 01: what contiguous memory wastes."""

from __future__ import annotations

from minipaged.course.checks.lesson_01_answers import CHECK as ANSWERS
from minipaged.course.checks.lesson_01_fit import FIRST_FIT
from minipaged.course.checks.lesson_01_sums import KV_BYTES, MEMORY_USE

CHECKS = {"01.1": KV_BYTES, "01.2": MEMORY_USE, "01.3": FIRST_FIT, "01.4": ANSWERS}
