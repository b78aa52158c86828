"""Lesson 02: the free queue, the block pool, the self-check questions."""

from __future__ import annotations

from minipaged.course.checks.lesson_02_answers import CHECK as ANSWERS
from minipaged.course.checks.lesson_02_pool import CHECK as POOL
from minipaged.course.checks.lesson_02_queue import CHECK as QUEUE

CHECKS = {"02.1": QUEUE, "02.2": POOL, "02.3": ANSWERS}
