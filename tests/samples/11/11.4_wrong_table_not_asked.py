# says: The table was not asked
def answers():
    return {'a': 20741, 'b': 53285, 'c': -1073741824, 'd': [16384000, 4096000], 'e': [16, 16, 32], 'f': [128, 4, 2048], 'g': 68.75, 'h': 'out'}
