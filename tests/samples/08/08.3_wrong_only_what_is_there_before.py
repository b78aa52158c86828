# says: An admission may leave fewer blocks than the low mark
class WaterMarks:
    def __init__(self, config):
        self.low = config.low_water_blocks
        self.high = config.high_water_blocks
        self.headroom = config.admission_headroom

    def __call__(self, blocks_needed, num_free):
        return num_free >= self.high and blocks_needed + self.headroom <= num_free

    def must_shed(self, num_free):
        return num_free < self.low
