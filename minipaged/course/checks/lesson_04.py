"""Lesson 04: softmax, two halves merged, attention over a block table, the self-check questions."""

from __future__ import annotations

from minipaged.course.checks.lesson_04_answers import CHECK as ANSWERS
from minipaged.course.checks.lesson_04_attention import CHECK as ATTENTION
from minipaged.course.checks.lesson_04_merge import CHECK as MERGE
from minipaged.course.checks.lesson_04_softmax import CHECK as SOFTMAX

CHECKS = {"04.1": SOFTMAX, "04.2": MERGE, "04.3": ATTENTION, "04.4": ANSWERS}
