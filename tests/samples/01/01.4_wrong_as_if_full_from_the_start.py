# says: While it grows it uses half of that
def answers():
    return {"a": 64, "b": 12.21, "c": 9.8, "d": 32, "e": 63.5, "f": 6.67}
