def pick_next(waiting, match_len, passed_over, patience):
    chosen = waiting[0]
    if passed_over < patience:
        for name in waiting[1:]:
            if match_len[name] > match_len[chosen]:
                chosen = name
    return chosen
