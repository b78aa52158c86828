from itertools import takewhile


def match_with_split(root, pages):
    """One node a call."""
    child = root.children.get(pages[0]) if pages else None
    if child is None:
        return root, []
    pairs = zip(child.pages, pages)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    if same == len(child.pages):
        node, behind = match_with_split(child, pages[same:])
        return node, child.block_ids + behind
    upper = type(child)()
    upper.parent, child.parent = root, upper
    for name in ("pages", "block_ids"):
        both = getattr(child, name)
        setattr(upper, name, both[:same])
        setattr(child, name, both[same:])
    root.children[pages[0]] = upper
    upper.children = {child.pages[0]: child}
    return upper, list(upper.block_ids)
