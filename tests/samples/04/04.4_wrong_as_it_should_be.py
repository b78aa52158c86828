# says: Follow what it does do, thread by thread
def answers():
    return {"a": 2.0, "b": 3.0, "c": 6, "d": "BCAD", "e": 256, "f": "moved", "g": 768, "h": 16}
