"""Adam whose weights start again in the middle of a run, with its moments carried over or new."""

from dataclasses import dataclass

from mixsweep.plugins import Count, Optimizer


@dataclass(frozen=True, kw_only=True, slots=True)
class RestartedAdam(Optimizer):
    """Adam that sets all weights back to their first values after some steps, once.

    This is what a program does that trains several runs with one optimizer and resets the weights
    of the network only: the second run starts with the moments that the first one left.
    """

    name = "adam-restarted"

    restart: Count = 1600
    """Step after which the weights start again; it has to be before the last step."""
    carried: bool = True
    """True: keep Adam's moments and its step counter; false: begin them anew, as for a new run."""

    def over(self, parameters):
        """Return Adam over a network's parameters, which now have their first values."""
        import torch

        first = []

        class Restarted(torch.optim.Adam):
            def step(optimizer, closure=None):  # noqa: N805  `self` is the settings
                loss = torch.optim.Adam.step(optimizer, closure)
                group = optimizer.param_groups[0]
                group["taken"] += 1
                if group["taken"] == self.restart:
                    with torch.no_grad():
                        for parameter, value in zip(group["params"], first, strict=True):
                            parameter.copy_(value)
                    if not self.carried:
                        optimizer.state.clear()
                return loss

        own = list(parameters)
        first += [parameter.detach().clone() for parameter in own]
        return Restarted([{"params": own, "taken": 0}], lr=self.lr, fused=True)
