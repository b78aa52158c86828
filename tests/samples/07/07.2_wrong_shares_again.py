# says: The request that made room got more for it
class UnifiedScheduler(SchedulerParts):
    def schedule(self):
        plan = self.new_plan()
        left = self.serve_running(plan, self.config.max_num_batched_tokens)
        if not self.preempted:
            self.serve_waiting(plan, left)
        return plan

    def serve_running(self, plan, budget):
        for request in list(self.running):
            missing = request.num_tokens - request.num_computed_tokens
            count = min(missing, budget)
            if count < 1 or request in self.preempted:
                continue
            grown = self.manager.grow(request, count)
            while grown is None:
                victim = self.choose_victim(self.running, request)
                budget += self.preempt(victim, plan)
                if victim is request:
                    return budget
                count = min(missing, budget)
                grown = self.manager.grow(request, count)
            self.put(plan, request, count, grown, self.ends(request, count))
            budget -= count
        return budget

    def serve_waiting(self, plan, budget):
        while self.waiting and budget and len(self.running) < self.config.max_num_seqs:
            request = self.waiting[0]
            if not self.may_enter(request):
                return
            count = min(request.num_tokens, budget)
            grown = self.manager.grow(request, count)
            self.admit(request)
            self.put(plan, request, count, grown, self.ends(request, count))
            budget -= count

    def ends(self, request, count):
        return request.num_computed_tokens + count == request.num_tokens
