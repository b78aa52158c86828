class FCFSScheduler(SchedulerBase):
    """The two halves of a step in methods of their own."""

    def schedule(self):
        plan = self.new_plan()
        for request in list(self.running):
            if request in self.running:
                self.go_on(plan, request)
        while self.waiting and self.enters(plan, self.waiting[0]):
            self.waiting.popleft()
        return plan

    def go_on(self, plan, request):
        grown = self.manager.grow(request, 1)
        while not grown:
            victim = self.running[-1]
            self.preempt(victim)
            if victim is request:
                return
            grown = self.manager.grow(request, 1)
        self.put(plan, request, 1, grown)

    def enters(self, plan, request):
        used = plan.num_tokens
        budget, places = self.config.max_num_batched_tokens, self.config.max_num_seqs
        if len(self.running) >= places or used and used + request.num_tokens > budget:
            return False
        grown = self.manager.grow(request, request.num_tokens)
        if grown:
            self.put(plan, request, request.num_tokens, grown)
            request.move_to(RequestStatus.RUNNING)
            self.running.append(request)
        return bool(grown)

    def take(self, request, num_computed, new_tokens):
        request.num_computed_tokens = request.num_computed_tokens + num_computed
        request.token_ids.extend(new_tokens)
        for token in new_tokens:
            reason = None
            if request.num_output_tokens >= request.max_output_tokens:
                reason = "length"
            if token in request.stop_token_ids:
                if request.num_output_tokens > request.params.min_tokens:
                    reason = "stop"
            if reason:
                self.finish(request, reason)
