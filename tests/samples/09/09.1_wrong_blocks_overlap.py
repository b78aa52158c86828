# says: The blocks overlap
from hashlib import sha256


def chain(token_ids, block_size, key=("", ""), root=""):
    out = []
    parent = root + repr(key)
    for i in range(len(token_ids) // block_size):
        parent = sha256((parent + str(token_ids[i : i + block_size])).encode()).hexdigest()
        out.append(parent)
    return out
