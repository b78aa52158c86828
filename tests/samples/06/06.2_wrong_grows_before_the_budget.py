# says: so ask it last
class FCFSScheduler(SchedulerBase):
    def schedule(self):
        plan = self.new_plan()
        budget = self.config.max_num_batched_tokens
        i = 0
        while i < len(self.running):
            request = self.running[i]
            grown = self.manager.grow(request, 1)
            while grown is None and request in self.running:
                self.preempt(self.running[-1])
                if request in self.running:
                    grown = self.manager.grow(request, 1)
            if grown is not None:
                self.put(plan, request, 1, grown)
                budget -= 1
                i += 1
        while self.waiting and len(self.running) < self.config.max_num_seqs:
            request = self.waiting[0]
            n = request.num_tokens
            grown = self.manager.grow(request, n)
            if grown is None:
                break
            if n > budget and plan.items:
                break
            self.waiting.popleft()
            request.move_to(RequestStatus.RUNNING)
            self.running.append(request)
            self.put(plan, request, n, grown)
            budget -= n
        return plan

    def take(self, request, num_computed, new_tokens):
        request.num_computed_tokens += num_computed
        for token in new_tokens:
            request.token_ids.append(token)
            if (
                token in request.stop_token_ids
                and request.num_output_tokens > request.params.min_tokens
            ):
                self.finish(request, "stop")
            elif request.num_output_tokens == request.max_output_tokens:
                self.finish(request, "length")
