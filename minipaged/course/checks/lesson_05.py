"""Lesson 05: forking tables, what a fork costs, a step of beam search, the self-check questions."""

from __future__ import annotations

from minipaged.course.checks.lesson_05_answers import CHECK as ANSWERS
from minipaged.course.checks.lesson_05_beams import CHECK as BEAM_STEP
from minipaged.course.checks.lesson_05_sums import CHECK as FORK_COST
from minipaged.course.checks.lesson_05_table import CHECK as TABLE

CHECKS = {"05.1": TABLE, "05.2": FORK_COST, "05.3": BEAM_STEP, "05.4": ANSWERS}
