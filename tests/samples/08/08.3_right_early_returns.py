class WaterMarks:
    def __init__(self, config):
        self.config = config

    def __call__(self, blocks_needed, num_free):
        if num_free < self.config.high_water_blocks:
            return False
        reserves = (self.config.low_water_blocks, self.config.admission_headroom)
        return all(blocks_needed + reserve <= num_free for reserve in reserves)

    def must_shed(self, num_free):
        return self.config.low_water_blocks > num_free
