# says: This is first come, first served
def pick_next(waiting, match_len, passed_over, patience):
    return waiting[0]
