# says: a str (text) is expected
def pick_next(waiting, match_len, passed_over, patience):
    if passed_over >= patience:
        return 0
    lengths = [match_len[name] for name in waiting]
    return lengths.index(max(lengths))
