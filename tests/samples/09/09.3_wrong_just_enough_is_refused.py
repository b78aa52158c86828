# says: If they are as many as the call needs, that is enough.
from collections import Counter


class CachingPool:
    """Reference counts over a fixed number of blocks, some of them known by a hash."""

    def __init__(self, num_blocks, make_queue):
        self.num_blocks, self.free_queue = num_blocks, make_queue(num_blocks)
        self.refcounts, self.hashes = [0] * num_blocks, [None] * num_blocks

    @property
    def num_free(self):
        """How many blocks nobody holds."""
        queue = self.free_queue
        return len(queue)

    def refcount(self, block_id):
        """How many tables hold the block."""
        return self.refcounts[block_id]

    def block_hash(self, block_id):
        """What the block is known by, or None."""
        return self.hashes[block_id]

    def share(self, block_ids):
        """One more holder for each block; one that was free leaves the queue."""
        self.refuse_unknown(block_ids)
        for b in block_ids:
            if self.refcounts[b] == 0:
                self.free_queue.remove(b)
            self.refcounts[b] += 1

    def refuse_unknown(self, block_ids):
        """ValueError if there is no such block."""
        for b in block_ids:
            if b not in range(self.num_blocks):
                raise ValueError(f"there is no block {b}: the last one is {self.num_blocks - 1}")

    def refuse_double_free(self, block_ids):
        """ValueError if there is no such block, or if one is freed more often than it is held."""
        self.refuse_unknown(block_ids)
        for b, times in Counter(block_ids).items():
            if times > self.refcounts[b]:
                raise ValueError(f"block {b} is held {self.refcounts[b]} times, not {times}")

    def set_hash(self, block_id, block_hash):
        """What the block is known by from now on; None if it is known no more."""
        self.hashes[block_id] = block_hash

    def allocate(self, count):
        """Hand out `count` blocks from the head of the queue, with one holder and no hash each."""
        if self.num_free < count:
            raise MemoryError(f"{self.num_free} blocks are free, {count} were asked for")
        ids = [self.free_queue.pop_head() for _ in range(count)]
        for b in ids:
            self.refcounts[b] = 1
            self.hashes[b] = None
        return ids

    def free(self, block_ids):
        """One holder fewer for each block, from the end of the list to its beginning."""
        self.refuse_double_free(block_ids)
        for b in reversed(block_ids):
            self.refcounts[b] -= 1
            if self.refcounts[b] == 0:
                if self.hashes[b] is None:
                    self.free_queue.prepend(b)
                else:
                    self.free_queue.append(b)

    def take(self, hits, num_new):
        """A list of the hits, each with one more holder, and of `num_new` other blocks.

        MemoryError if too few are free; then nothing has changed.
        """
        idle = sum(self.refcounts[b] == 0 for b in hits)
        if idle + num_new >= self.num_free:
            raise MemoryError("too few")
        self.share(hits)
        return hits + self.allocate(num_new)
