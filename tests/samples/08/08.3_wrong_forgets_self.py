# says: on self
class WaterMarks:
    def __init__(self, config):
        low = config.low_water_blocks
        high = config.high_water_blocks
        headroom = config.admission_headroom

    def __call__(self, blocks_needed, num_free):
        return num_free >= high and num_free - blocks_needed >= max(low, headroom)

    def must_shed(self, num_free):
        return num_free < low
