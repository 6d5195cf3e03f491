"""Recomputes a result that was lost with its node, from a checkpoint and the requests since then."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from featherlane.distributed.node import NodeWorlds, Order, Place, Report, Spec


class Replay:
    """The requests of a worker since its checkpoint, up to the wanted one; it can be sent to other processes.

    Args:
        model: reference to the packed model.
        base: reference to the checkpoint; None for the model's initial state.
        sent: orders and arrays of each request; the result of the last one is returned.

    Note:
        It keeps the checkpoint and the inputs in Ray's store as long as it exists.
    """

    def __init__(self, model: Any, base: Any, spec: Spec, sent: Sequence[tuple[Sequence[Order], Sequence[Any]]]):
        self.model, self.base, self.spec, self.sent = model, base, spec._replace(cores=()), list(sent)

    def again(self) -> dict[str, np.ndarray]:
        """Recomputes the result with an actor on any node.

        Raises:
            ray.exceptions.RayError: the actor was lost, too, or no node has capacity.
            Exception: an error of the worlds.
        """
        ray = sys.modules["ray"]
        actor = ray.remote(NodeWorlds).options(num_cpus=0, max_restarts=0, scheduling_strategy="SPREAD").remote()
        try:
            begin = ("make", (Place(0), self.spec)) if self.base is None else ("take", (self.spec, Place(0)))
            references = [actor.do.remote([begin], self.model if self.base is None else self.base)]
            for orders, arrays in self.sent[:-1]:
                references.append(actor.do.remote([*orders, ("nothing", ())], *arrays))
            orders, arrays = self.sent[-1]
            references.append(actor.do.remote(orders, *arrays))
            answers = ray.get(references)
            for report, _ in answers:
                error = Report(*report).error
                if error is not None:
                    raise error
            result = answers[-1][1]
            return {name: np.array(rows) for name, rows in result.items()}
        finally:
            ray.kill(actor, no_restart=True)
