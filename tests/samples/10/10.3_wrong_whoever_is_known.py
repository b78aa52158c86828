# says: Return one of the names in `waiting`
def pick_next(waiting, match_len, passed_over, patience):
    if passed_over >= patience:
        return waiting[0]
    return max(match_len, key=match_len.get)
