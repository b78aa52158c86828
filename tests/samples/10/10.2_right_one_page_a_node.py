class RadixIndex:
    """A trie: every page is a node of its own, so nothing is ever split."""

    def __init__(self, block_size, pool):
        self.block_size, self.pool = block_size, pool
        self.roots, self.nodes = {}, {}

    def known_blocks(self):
        return sorted(self.nodes)

    def page(self, token_ids, entry):
        return tuple(token_ids[entry * self.block_size : (entry + 1) * self.block_size])

    def match(self, token_ids, key):
        node, found = self.roots.get(key), []
        while node is not None and (len(found) + 1) * self.block_size < len(token_ids):
            node = node["below"].get(self.page(token_ids, len(found)))
            if node is not None:
                found.append(node["block"])
        return found

    def publish(self, token_ids, block_ids, first, last, key):
        node, swaps = self.roots.setdefault(key, {"below": {}}), []
        for entry in range(last):
            page = self.page(token_ids, entry)
            if page not in node["below"]:
                child = {"block": block_ids[entry], "page": page, "above": node, "below": {}}
                node["below"][page] = self.nodes[block_ids[entry]] = child
                self.pool.set_hash(block_ids[entry], b"%d" % entry)
            node = node["below"][page]
            if node["block"] != block_ids[entry]:
                swaps.append((entry, node["block"]))
        return swaps

    def forget(self, block_id):
        node = self.nodes.get(block_id)
        if node is not None:
            del node["above"]["below"][node["page"]]
            self.drop(node)

    def drop(self, node):
        del self.nodes[node["block"]]
        self.pool.set_hash(node["block"], None)
        for child in node["below"].values():
            self.drop(child)

    def protected_tokens(self):
        return self.block_size * sum(self.pool.refcount(b) > 0 for b in self.nodes)

    def evictable_tokens(self):
        return self.block_size * sum(self.pool.refcount(b) == 0 for b in self.nodes)
