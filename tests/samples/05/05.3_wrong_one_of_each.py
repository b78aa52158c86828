# says: One continuation was taken of each beam
def beam_step(beams, logprobs, width):
    found = []
    for parent, (_, total) in enumerate(beams):
        row = logprobs[parent]
        if row:
            token = max(sorted(row), key=row.get)
            found.append((parent, token, total + row[token]))
    found.sort(key=lambda one: (-one[2], one[0], one[1]))
    return found[:width]
