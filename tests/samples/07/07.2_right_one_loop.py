class UnifiedScheduler(SchedulerParts):
    """Running and waiting in one walk; the plan's length is the place."""

    def schedule(self):
        plan = self.new_plan()
        total = self.config.max_num_batched_tokens
        while (left := total - sum(len(item.token_ids) for item in plan.items)) > 0:
            place = len(plan.items)
            is_new = place == len(self.running)
            if is_new and (self.preempted or not self.can_admit()):
                break
            request = self.waiting[0] if is_new else self.running[place]
            behind = request.num_tokens - request.num_computed_tokens
            share = min(behind, left)
            while (grown := self.manager.grow(request, share)) is None:
                victim = self.choose_victim(self.running, request)
                self.preempt(victim, plan)
                if victim is request:
                    return plan
            if is_new:
                self.admit(request)
            self.put(plan, request, share, grown, share == behind)
        return plan

    def can_admit(self):
        seats = self.config.max_num_seqs - len(self.running)
        return bool(self.waiting) and seats > 0 and self.may_enter(self.waiting[0])
