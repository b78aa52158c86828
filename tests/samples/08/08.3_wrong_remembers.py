# says: The answer depends on earlier calls
class WaterMarks:
    """Closed from the moment that the low mark was passed until the high one is reached."""

    def __init__(self, config):
        self.config = config
        self.is_open = True

    def __call__(self, blocks_needed, num_free):
        if num_free < self.config.low_water_blocks:
            self.is_open = False
        elif num_free >= self.config.high_water_blocks:
            self.is_open = True
        left = num_free - blocks_needed
        reserve = max(self.config.low_water_blocks, self.config.admission_headroom)
        return self.is_open and left >= reserve

    def must_shed(self, num_free):
        return num_free < self.config.low_water_blocks
