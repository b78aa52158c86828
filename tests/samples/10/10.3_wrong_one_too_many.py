# says: One too many
def pick_next(waiting, match_len, passed_over, patience):
    if passed_over > patience:
        return waiting[0]
    return max(waiting, key=match_len.get)
