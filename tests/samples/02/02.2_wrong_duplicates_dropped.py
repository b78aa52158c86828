# says: free takes one holder from each block
class BlockPool:
    """Reference counts over a fixed number of blocks.

    Has three attributes beside its methods: num_blocks, num_free (blocks that nobody holds) and
    free_queue.
    """

    def __init__(self, num_blocks, make_queue):
        """All blocks are free. make_queue(num_blocks) makes the free queue."""
        self.num_blocks = num_blocks
        self.free_queue = make_queue(num_blocks)
        self.counts = [0] * num_blocks

    @property
    def num_free(self):
        """How many blocks nobody holds."""
        return len(self.free_queue)

    def refcount(self, block_id):
        """How many tables hold the block."""
        return self.counts[block_id]

    def block_hash(self, block_id: int) -> bytes | None:
        """The hash that the contents are known by: none before lesson 09."""
        return None

    def allocate(self, count):
        """Hand out `count` blocks from the head of the queue, each with refcount 1, as a list.

        MemoryError if fewer are free.
        """
        if count > self.num_free:
            raise MemoryError(f"{count} blocks asked for, {self.num_free} are free")
        block_ids = [self.free_queue.pop_head() for _ in range(count)]
        for block_id in block_ids:
            self.counts[block_id] = 1
        return block_ids

    def share(self, block_ids):
        """One more holder for each block; one that was free stops being free.

        ValueError if an id does not exist.
        """
        if not all(0 <= block_id < self.num_blocks for block_id in block_ids):
            raise ValueError(f"{block_ids}: ids end at {self.num_blocks - 1}")
        for block_id in block_ids:
            if self.counts[block_id] == 0:
                self.free_queue.remove(block_id)
            self.counts[block_id] += 1

    def free(self, block_ids):
        """One holder fewer for each block; those with none left go to the front of the queue.

        The list is worked off from its end. ValueError if an id does not exist, or if a block
        would be freed more often than it is held.
        """
        block_ids = list(dict.fromkeys(block_ids))
        drops = {}
        for block_id in block_ids:
            drops[block_id] = drops.get(block_id, 0) + 1
        for block_id, count in drops.items():
            if not 0 <= block_id < self.num_blocks or count > self.counts[block_id]:
                raise ValueError(f"double free of block {block_id}")
        for block_id in reversed(block_ids):
            self.counts[block_id] -= 1
            if self.counts[block_id] == 0:
                self.free_queue.prepend(block_id)
