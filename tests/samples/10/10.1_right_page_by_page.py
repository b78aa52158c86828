def match_with_split(root, pages):
    """A place in the tree (a node and how many of its pages are behind us), moved page by page."""
    node, used, found = root, 0, []
    for page in pages:
        if used == len(node.pages):
            if page not in node.children:
                break
            node, used = node.children[page], 0
        elif node.pages[used] != page:
            break
        found.append(node.block_ids[used])
        used += 1
    if used < len(node.pages):
        above, first = node.parent, node.pages[0]
        upper = Node(node.pages[:used], node.block_ids[:used], above)
        del node.pages[:used], node.block_ids[:used]
        upper.children[node.pages[0]] = node
        above.children[first] = node.parent = upper
        node = upper
    return node, found
