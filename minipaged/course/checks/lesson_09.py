"""Lesson 09. 09.1 chain, 09.2 HashIndex, 09.3 CachingPool, 09.4 answers()."""

from __future__ import annotations

from minipaged.course.checks.lesson_09_answers import CHECK as ANSWERS
from minipaged.course.checks.lesson_09_chain import CHECK as CHAIN
from minipaged.course.checks.lesson_09_index import CHECK as INDEX
from minipaged.course.checks.lesson_09_pool import CHECK as POOL

CHECKS = {"09.1": CHAIN, "09.2": INDEX, "09.3": POOL, "09.4": ANSWERS}
