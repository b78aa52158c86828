"""Lesson 12: pieces merged, the cost of a step, a kernel mended, the self-check questions."""

from __future__ import annotations

from minipaged.course.checks.lesson_12_answers import CHECK as ANSWERS
from minipaged.course.checks.lesson_12_cost import CHECK as COST
from minipaged.course.checks.lesson_12_merge import CHECK as MERGE
from minipaged.course.checks.lesson_12_suspect import CHECK as SUSPECT

CHECKS = {"12.1": MERGE, "12.2": COST, "12.3": SUSPECT, "12.4": ANSWERS}
