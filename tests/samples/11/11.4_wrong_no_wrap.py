# says: 32 bits with a sign end at 2 to the 31
def answers():
    return {'a': 53509, 'b': 53285, 'c': 3221225472, 'd': [16384000, 4096000], 'e': [16, 16, 32], 'f': [128, 4, 2048], 'g': 68.75, 'h': 'out'}
