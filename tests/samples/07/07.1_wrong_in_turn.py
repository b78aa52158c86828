# says: they take turns here
from collections import deque


def chunks(prompt_len, budget, decodes_left):
    lengths = []
    line = deque(decodes_left)
    while prompt_len > 0:
        served = min(budget, len(line))
        lengths.append(min(prompt_len, budget - served))
        prompt_len -= lengths[-1]
        for _ in range(served):
            left = line.popleft() - 1
            if left:
                line.append(left)
    return lengths
