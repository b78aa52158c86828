# says: Chosen was the shortest match
def pick_next(waiting, match_len, passed_over, patience):
    if passed_over >= patience:
        return waiting[0]
    return min(waiting, key=lambda name: match_len[name])
