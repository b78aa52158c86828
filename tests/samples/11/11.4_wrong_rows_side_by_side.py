# says: A row of 256 bytes lies side by side in NHD only
def answers():
    return {'a': 53509, 'b': 53285, 'c': -1073741824, 'd': [16384000, 4096000], 'e': [16, 16, 32], 'f': [256, 4, 2048], 'g': 68.75, 'h': 'out'}
