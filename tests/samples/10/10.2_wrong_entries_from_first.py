# says: Entries count from the start of the table
class RadixIndex:
    """Which block holds which prefix: a tree of pages for each key."""

    def __init__(self, block_size, pool):
        self.block_size, self.pool = block_size, pool
        self.roots = {}  # key -> the root of its tree
        self.nodes = {}  # known block -> the node that it stands in

    def pages_of(self, token_ids, count):
        """The first `count` pages of a sequence."""
        size = self.block_size
        return [tuple(token_ids[i * size : (i + 1) * size]) for i in range(count)]

    def known_blocks(self):
        """Every block of all trees, in ascending order."""
        return sorted(self.nodes)

    def walk(self, root, pages):
        """Where the known part of `pages` ends: (node, how many of its pages, block ids)."""
        node, used, block_ids = root, 0, []
        while used == len(node.pages) and len(block_ids) < len(pages):
            child = node.children.get(pages[len(block_ids)])
            if child is None:
                break
            node, used = child, 0
            for known, page in zip(child.pages, pages[len(block_ids) :], strict=False):
                if known != page:
                    break
                used += 1
            block_ids += child.block_ids[:used]
        return node, used, block_ids

    def match(self, token_ids, key):
        """Blocks of the longest known prefix, head first; at least one token is left."""
        pages = self.pages_of(token_ids, (len(token_ids) - 1) // self.block_size)
        root = self.roots.get(key, Node())
        return self.walk(root, pages)[2]

    def split(self, node, index):
        """Put the first `index` pages into a new node above this one; return the new node."""
        upper = Node(node.pages[:index], node.block_ids[:index], node.parent)
        node.parent.children[node.pages[0]] = upper
        node.pages, node.block_ids = node.pages[index:], node.block_ids[index:]
        node.parent = upper
        upper.children[node.pages[0]] = node
        for block_id in upper.block_ids:
            self.nodes[block_id] = upper
        return upper

    def publish(self, token_ids, block_ids, first, last, key):
        """Make entries first … last - 1 known; (entry, block) where the tree has another block."""
        root = self.roots.setdefault(key, Node())
        pages = self.pages_of(token_ids, last)
        node, used, found = self.walk(root, pages)
        rest, own = pages[len(found) :], block_ids[len(found) : last]
        if rest:
            if used < len(node.pages):
                node = self.split(node, used)
            if node is root or node.children:
                child = Node((), (), node)
                node.children[rest[0]] = child
                node = child
            node.pages += rest  # a leaf grows at its end
            node.block_ids += own
            for block_id in own:
                self.nodes[block_id] = node
                self.pool.set_hash(block_id, b"tree")
        return [(entry, block) for entry, block in enumerate(found[first:]) if block != block_ids[entry]]

    def forget(self, block_id):
        """The block's contents are lost: drop it and all that stands behind it."""
        node = self.nodes.get(block_id)
        if node is None:
            return
        index = node.block_ids.index(block_id)
        if index == 0:
            del node.parent.children[node.pages[0]]
        dropped, below = node.block_ids[index:], list(node.children.values())
        while below:
            child = below.pop()
            dropped += child.block_ids
            below += child.children.values()
        node.pages, node.block_ids = node.pages[:index], node.block_ids[:index]
        node.children = {}
        for gone in dropped:
            del self.nodes[gone]
            self.pool.set_hash(gone, None)

    def protected_tokens(self):
        """Tokens in known blocks that some table holds."""
        held = [block_id for block_id in self.nodes if self.pool.refcount(block_id) > 0]
        return len(held) * self.block_size

    def evictable_tokens(self):
        """Tokens in known blocks that no table holds."""
        return len(self.nodes) * self.block_size - self.protected_tokens()
