# says: Only full blocks have a digest
from hashlib import sha256


def chain(token_ids, block_size, key=("", ""), root=""):
    """A list with the digest of every full block, 64 hex digits each."""
    digests, before = [], root + repr(key)
    for end in range(block_size, len(token_ids) + block_size, block_size):
        text = before + str(token_ids[end - block_size : end])
        before = sha256(text.encode()).hexdigest()
        digests.append(before)
    return digests
