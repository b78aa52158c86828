# says: by the new token's log-probability alone
def beam_step(beams, logprobs, width):
    found = []
    for parent, (_, total) in enumerate(beams):
        for token, logprob in logprobs[parent].items():
            found.append((parent, token, total + logprob))
    found.sort(key=lambda one: (-logprobs[one[0]][one[1]], one[0], one[1]))
    return found[:width]
