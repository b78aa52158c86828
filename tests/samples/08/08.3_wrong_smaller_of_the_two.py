# says: Only the smaller of low mark and headroom
class WaterMarks:
    def __init__(self, config):
        self.low = config.low_water_blocks
        self.high = config.high_water_blocks
        self.headroom = config.admission_headroom

    def __call__(self, blocks_needed, num_free):
        return num_free >= self.high and num_free - blocks_needed >= min(self.low, self.headroom)

    def must_shed(self, num_free):
        return num_free < self.low
