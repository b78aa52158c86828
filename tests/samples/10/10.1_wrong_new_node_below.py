# says: The node that was there must keep the lower half
def split(node, index):
    lower = Node(node.pages[index:], node.block_ids[index:], node)
    lower.children = node.children
    for child in lower.children.values():
        child.parent = lower
    node.pages, node.block_ids = node.pages[:index], node.block_ids[:index]
    node.children = {lower.pages[0]: lower}
    return node


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
