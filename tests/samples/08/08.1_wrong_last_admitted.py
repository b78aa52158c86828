# says: This takes the last admitted
def choose_victim(running, needy):
    return running[-1]
