"""Lesson 08: the victim, swap or recompute, the water marks, the self-check questions."""

from __future__ import annotations

from minipaged.course.checks.lesson_08_answers import CHECK as ANSWERS
from minipaged.course.checks.lesson_08_costs import CHECK as COSTS
from minipaged.course.checks.lesson_08_marks import CHECK as MARKS
from minipaged.course.checks.lesson_08_victim import CHECK as VICTIM

CHECKS = {"08.1": VICTIM, "08.2": COSTS, "08.3": MARKS, "08.4": ANSWERS}
