# says: The first in line can be passed over for ever
def pick_next(waiting, match_len, passed_over, patience):
    return max(waiting, key=lambda name: match_len[name])
