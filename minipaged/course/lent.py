"""Everything that a script may lend to the learner's code, by the name that it has there."""

from __future__ import annotations

from typing import Any

from minipaged.course import (
    fixture_far,
    fixture_plans,
    fixture_pools,
    fixture_requests,
    fixture_sched,
    fixture_tree,
    fixture_victims,
    fixtures,
)

FIXTURES: dict[str, Any] = {
    "AttentionMeta": fixtures.PlainMeta,
    "PlainHashPool": fixture_pools.PlainHashPool,
    "PlainHashes": fixture_pools.PlainHashes,
    "PlainPool": fixture_pools.PlainPool,
    "PlainQueue": fixtures.PlainQueue,
    "SchedulerDesk": fixture_sched.SchedulerDesk,
    "draw_tree": fixture_tree.draw_tree,
    "far_pool": fixture_far.far_pool,
    "names": fixture_requests.names,
    "one_hash": fixture_pools.one_hash,
    "plant": fixture_tree.plant,
    "requests": fixture_requests.requests,
    "settings": fixture_requests.settings,
    "VictimDesk": fixture_victims.VictimDesk,
    "words_missing": fixtures.words_missing,
}

# the files of all that is lent, and of what it works with: no line of them is the learner's
FILES = tuple(
    str(module.__file__)
    for module in (
        fixture_far,
        fixture_plans,
        fixture_pools,
        fixture_requests,
        fixture_sched,
        fixture_tree,
        fixture_victims,
        fixtures,
    )
)
