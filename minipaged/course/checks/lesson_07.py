"""Lesson 07: how a prompt is cut, the unified-budget scheduler, choosing a budget, questions."""

from __future__ import annotations

from minipaged.course.checks.lesson_07_answers import CHECK as ANSWERS
from minipaged.course.checks.lesson_07_budget import CHECK as BUDGET
from minipaged.course.checks.lesson_07_chunks import CHECK as CHUNKS
from minipaged.course.checks.lesson_07_scheduler import CHECK as SCHEDULER

CHECKS = {"07.1": CHUNKS, "07.2": SCHEDULER, "07.3": BUDGET, "07.4": ANSWERS}
