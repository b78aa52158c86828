import hashlib


def chain(token_ids, block_size, key=("", ""), root=""):
    return follow(f"{root}{key!r}", list(token_ids), block_size)


def follow(before, tokens, size):
    if len(tokens) < size:
        return []
    digest = hashlib.sha256(bytes(before + str(tokens[:size]), "utf-8")).hexdigest()
    return [digest, *follow(digest, tokens[size:], size)]
