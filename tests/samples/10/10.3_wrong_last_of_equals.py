# says: the one that came last was chosen
def pick_next(waiting, match_len, passed_over, patience):
    if passed_over >= patience:
        return waiting[0]
    return sorted(waiting, key=lambda name: match_len[name])[-1]
