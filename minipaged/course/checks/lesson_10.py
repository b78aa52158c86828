"""Lesson 10: the walk through the tree, the index over the pool, the order, the questions."""

from __future__ import annotations

from minipaged.course.checks.lesson_10_answers import CHECK as ANSWERS
from minipaged.course.checks.lesson_10_index import CHECK as INDEX
from minipaged.course.checks.lesson_10_match import CHECK as MATCH
from minipaged.course.checks.lesson_10_order import CHECK as ORDER

CHECKS = {"10.1": MATCH, "10.2": INDEX, "10.3": ORDER, "10.4": ANSWERS}
