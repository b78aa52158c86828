def fork_cost(prompt_len, n, block_size):
    tail = prompt_len % block_size
    blocks = [block_size] * (prompt_len // block_size)
    holders = n if tail else 0
    copies = 0
    for _ in range(n):
        if holders > 1:
            copies += 1
            holders -= 1
        blocks.append(tail + 1)
    return copies, len(blocks)
