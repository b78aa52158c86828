# says: a bool (True or False)
class WaterMarks:
    def __init__(self, config):
        self.config = config

    def __call__(self, blocks_needed, num_free):
        left = num_free - blocks_needed
        reserve = max(self.config.low_water_blocks, self.config.admission_headroom)
        return int(num_free >= self.config.high_water_blocks and left >= reserve)

    def must_shed(self, num_free):
        return num_free < self.config.low_water_blocks
