from collections import OrderedDict


class FreeQueue:
    def __init__(self, num_blocks):
        self.ids = OrderedDict.fromkeys(range(num_blocks))

    def _require(self, block_id, queued):
        if type(block_id) is not int or (block_id in self.ids) != queued:
            raise ValueError(block_id)

    def pop_head(self):
        if not self.ids:
            raise IndexError("empty")
        return self.ids.popitem(last=False)[0]

    def append(self, block_id):
        self._require(block_id, queued=False)
        self.ids[block_id] = None

    def prepend(self, block_id):
        self.append(block_id)
        self.ids.move_to_end(block_id, last=False)

    def remove(self, block_id):
        self._require(block_id, queued=True)
        del self.ids[block_id]

    def __contains__(self, block_id):
        return block_id in self.ids

    def __len__(self):
        return len(self.ids)

    def __iter__(self):
        return iter(self.ids)
