# says: stop is looked at first
class FCFSScheduler(SchedulerBase):
    """First come, first served; whole prompts; iteration-level."""

    def schedule(self):
        """The plan of one step."""
        plan = self.new_plan()
        while len(plan.items) < len(self.running):
            request = self.running[len(plan.items)]
            grown = self.manager.grow(request, 1)
            if grown is None:
                self.preempt(self.running[-1])
            else:
                self.put(plan, request, 1, grown)
        budget = self.config.max_num_batched_tokens - len(plan.items)
        while self.waiting:
            request = self.waiting[0]
            num_new = request.num_tokens
            if len(self.running) == self.config.max_num_seqs or (num_new > budget and plan.items):
                break
            grown = self.manager.grow(request, num_new)
            if grown is None:
                break
            self.running.append(self.waiting.popleft())
            request.move_to(RequestStatus.RUNNING)
            self.put(plan, request, num_new, grown)
            budget -= num_new
        return plan

    def take(self, request, num_computed, new_tokens):
        """Note what was computed, append the new tokens, end the request if it is due."""
        request.num_computed_tokens += num_computed
        for token in new_tokens:
            request.token_ids.append(token)
            count = request.num_output_tokens
            if count == request.max_output_tokens:
                return self.finish(request, "length")
            if token in request.stop_token_ids and count > request.params.min_tokens:
                return self.finish(request, "stop")
