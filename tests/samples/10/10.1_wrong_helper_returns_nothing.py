# says: must be returned by the helper too
def split(node, index):
    """Put the first `index` pages into a new node above this one; return the new node."""
    upper = Node(node.pages[:index], node.block_ids[:index], node.parent)
    node.parent.children[node.pages[0]] = upper
    node.pages, node.block_ids = node.pages[index:], node.block_ids[index:]
    node.parent = upper
    upper.children[node.pages[0]] = node



def match_with_split(root, pages):
    """Where the known part of `pages` ends: (node, block ids from the root on)."""
    node, block_ids = root, []
    while len(block_ids) < len(pages):
        child = node.children.get(pages[len(block_ids)])
        if child is None:
            break
        same = 0
        for known, page in zip(child.pages, pages[len(block_ids) :], strict=False):
            if known != page:
                break
            same += 1
        block_ids += child.block_ids[:same]
        if same < len(child.pages):
            return split(child, same), block_ids
        node = child
    return node, block_ids
