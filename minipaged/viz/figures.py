"""Pictures for notebooks: leave one as the last expression of a cell to see it. No torch.

In all of them full blocks are solid, those still filling are filled in part and paler, free ones
empty ("·" in the text form), and shared ones bear a "+".
"""

from __future__ import annotations

from minipaged.viz.figure_pool import show_pool
from minipaged.viz.figure_reads import show_reads
from minipaged.viz.figure_slots import show_slots
from minipaged.viz.figure_step import show_step
from minipaged.viz.picture import Picture, side_by_side

__all__ = ["Picture", "show_pool", "show_reads", "show_slots", "show_step", "side_by_side"]
