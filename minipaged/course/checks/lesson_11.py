"""Lesson 11: the address of a number, block sizes compared, the decode kernel, the questions."""

from __future__ import annotations

from minipaged.course.checks.lesson_11_address import CHECK as ADDRESS
from minipaged.course.checks.lesson_11_answers import CHECK as ANSWERS
from minipaged.course.checks.lesson_11_blocks import CHECK as BLOCKS
from minipaged.course.checks.lesson_11_kernel import CHECK as KERNEL

CHECKS = {"11.1": ADDRESS, "11.2": BLOCKS, "11.3": KERNEL, "11.4": ANSWERS}
