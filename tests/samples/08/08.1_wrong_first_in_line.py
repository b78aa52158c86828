# says: goes only if it runs alone
def choose_victim(running, needy):
    return running[0]
