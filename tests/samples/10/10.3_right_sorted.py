def pick_next(waiting, match_len, passed_over, patience):
    order = list(waiting)
    if patience > passed_over:
        order.sort(key=lambda name: -match_len[name])
    return order[0]
