"""Prefix caches under a simulated manager, beside a plain model of what every block holds."""

from __future__ import annotations

from hypothesis import strategies as st

from minipaged.cache.pool import BlockPool

PLAIN = ("", "")


class Sequence:
    """One simulated request: its tokens, its table, and how many blocks it has published."""

    def __init__(self, tokens, key, matched):
        self.tokens, self.key, self.table = list(tokens), key, list(matched)
        self.hits = self.published = len(matched)


class Driver:
    """Does with pool and cache what a manager does, beside a model of what every block holds.

    contents: block id -> (key, all tokens up to the block's end): what its keys and values are a
    function of. known: the same as an index, (key, tokens) -> ids of published, living blocks.
    """

    def __init__(self, make, num_blocks, block_size):
        self.pool, self.block_size = BlockPool(num_blocks), block_size
        self.cache = make(block_size, self.pool)
        self.contents, self.known = {}, {}

    def prefix(self, tokens, key, entry):
        return key, tuple(tokens[: (entry + 1) * self.block_size])

    def take(self, count):
        """Hand out blocks, in the manager's order: allocate, then forget."""
        ids = self.pool.allocate(count)
        for block_id in ids:
            self.cache.forget(block_id)
            self.contents.pop(block_id, None)
            for holders in self.known.values():
                holders.discard(block_id)
        return ids

    def start(self, tokens, key=PLAIN):
        """Match, share, allocate the rest; None, with nothing changed, if too little is free."""
        matched = self.cache.match(tokens, key)
        rest = -(-len(tokens) // self.block_size) - len(matched)
        idle = sum(self.pool.refcount(b) == 0 for b in matched)
        if rest + idle > self.pool.num_free:
            return None
        self.pool.share(matched)
        sequence = Sequence(tokens, key, matched)
        sequence.table += self.take(rest)
        return sequence

    def extend(self, sequence, tokens):
        """More known tokens, with room for them; False if there is none."""
        total = len(sequence.tokens) + len(tokens)
        missing = -(-total // self.block_size) - len(sequence.table)
        if missing > self.pool.num_free:
            return False
        sequence.table += self.take(max(0, missing))
        sequence.tokens += tokens
        return True

    def compute(self, sequence, end=None):
        """Compute all tokens before `end`, then publish the blocks that are full now."""
        end = len(sequence.tokens) if end is None else end
        first, last = sequence.published, end // self.block_size
        for entry in range(first, last):
            content = self.prefix(sequence.tokens, sequence.key, entry)
            self.contents[sequence.table[entry]] = content
        tokens, table, key = sequence.tokens, sequence.table, sequence.key
        swaps = self.cache.publish(tokens, table, first, max(first, last), key)
        for entry, block_id in swaps:
            assert first <= entry < last
            assert self.contents[block_id] == self.contents[table[entry]]
            self.pool.share([block_id])
            old, table[entry] = table[entry], block_id
            self.pool.free([old])
        for entry in range(last):
            if self.pool.block_hash(table[entry]) is not None:  # a weak hash may refuse one
                content = self.prefix(tokens, key, entry)
                self.known.setdefault(content, set()).add(table[entry])
        sequence.published = max(first, last)
        return swaps

    def finish(self, sequence):
        self.pool.free(sequence.table)

    def run(self, tokens, key=PLAIN):
        """One request from start to end."""
        sequence = self.start(tokens, key)
        self.compute(sequence)
        self.finish(sequence)
        return sequence

    def expected_hits(self, tokens, key):
        hits = 0
        while hits < (len(tokens) - 1) // self.block_size:
            if not self.known.get(self.prefix(tokens, key, hits)):
                break
            hits += 1
        return hits

    def check_match(self, tokens, key):
        """Right contents, never a forgotten block, as many as the model says."""
        matched = self.cache.match(tokens, key)
        for entry, block_id in enumerate(matched):
            assert block_id in self.known[self.prefix(tokens, key, entry)]
            assert self.contents[block_id] == self.prefix(tokens, key, entry)
        assert len(matched) == self.expected_hits(tokens, key)
        return len(matched)

    def check_known(self):
        known = sorted(self.cache.known_blocks())
        total = range(self.pool.num_blocks)
        assert known == [b for b in total if self.pool.block_hash(b) is not None]
        assert known == sorted(b for holders in self.known.values() for b in holders)


KEYS = [PLAIN, ("salt", ""), ("", "salt")]
TOKENS = st.lists(st.integers(0, 1), min_size=1, max_size=9)
SCRIPTS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), TOKENS, st.sampled_from(KEYS)),
        st.tuples(st.just("extend"), st.integers(0, 9), TOKENS),
        st.tuples(st.just("compute"), st.integers(0, 9), st.integers(0, 9)),
        st.tuples(st.just("finish"), st.integers(0, 9), st.none()),
    ),
    max_size=40,
)


def play(driver, script, after=lambda driver: None):
    """Carry out a script; what cannot be done (no memory, nobody runs) is left out."""
    running, asked = [], [([0, 1, 0, 1, 0, 1, 0], PLAIN)]
    for name, first, second in script:
        if name == "start":
            asked.append((first, second))
            sequence = driver.start(first, second)
            running += [sequence] if sequence else []
        elif running:
            sequence = running[first % len(running)]
            if name == "extend" and driver.extend(sequence, second):
                asked.append((list(sequence.tokens), sequence.key))
            elif name == "compute":
                computed = sequence.published * driver.block_size
                driver.compute(sequence, min(len(sequence.tokens), computed + second))
            elif name == "finish":
                driver.finish(sequence)
                running.remove(sequence)
        after(driver)
    return [driver.check_match(tokens, key) for tokens, key in asked]
