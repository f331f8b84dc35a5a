"""What a rollout does next, and why. Pure: no I/O, no clock, no random source; the same input has the same answer.

`plan.RolloutPlan` is the door. It follows one rollout by what changed, so that a call costs what changed and not what
the rollout holds; made anew from the same records it decides the same.
"""
