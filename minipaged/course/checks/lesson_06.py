"""Lesson 06: the states of a request, a scheduler, the counting of steps, the questions."""

from __future__ import annotations

from minipaged.course.checks.lesson_06_answers import CHECK as ANSWERS
from minipaged.course.checks.lesson_06_sched import CHECK as SCHED
from minipaged.course.checks.lesson_06_states import CHECK as STATES
from minipaged.course.checks.lesson_06_steps import CHECK as STEPS

CHECKS = {"06.1": STATES, "06.2": SCHED, "06.3": STEPS, "06.4": ANSWERS}
