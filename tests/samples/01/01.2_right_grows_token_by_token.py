def memory_use(lengths, max_model_len, block_size):
    reserved = used = held = 0
    for length in lengths:
        reserved += max_model_len
        room = 0
        for _token in range(length):
            if room == 0:
                held += block_size
                room = block_size
            room -= 1
            used += 1
    return reserved, used, held
