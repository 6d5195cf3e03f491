"""Stands for Ray: workers with real worlds in this process, which answer at once and can be lost."""

import copy
from types import SimpleNamespace

from featherlane.distributed.machine import this_machine
from featherlane.distributed.worker import WorkerWorlds

MACHINE = this_machine()


class LostError(Exception):
    """Stands for Ray's error of a lost actor."""


class TaskError(LostError):
    """Stands for Ray's error of a task whose result cannot be pickled."""


class Reference:
    """A value, or an error that `Ray.get` raises."""

    def __init__(self, value):
        self.value = value


class Actor:
    """A worker; `kill` loses it, and the next call finds a process without worlds."""

    def __init__(self):
        self.worlds, self.is_lost = WorkerWorlds(), False
        self.do = SimpleNamespace(remote=self._do)

    def _do(self, order, **given):
        if self.is_lost:
            self.__init__()
            return Reference(LostError("the process was killed"))
        given = {k: a.value if isinstance(a, Reference) else copy.deepcopy(a) for k, a in given.items()}
        return Reference(self.worlds.do(order, **given))

    def kill(self):
        self.is_lost = True


class Ray:
    """The functions of the module `ray` that calls use."""

    exceptions = SimpleNamespace(RayError=LostError, RayTaskError=TaskError)

    def put(self, thing):
        return Reference(thing)

    def get(self, reference):
        if isinstance(reference.value, Exception):
            raise reference.value
        return reference.value


class Pool:
    """Two workers with one thread each."""

    def __init__(self, *given):
        self.threads, self.actors = [1, 1], [Actor(), Actor()]

    def machine(self, k):
        if self.actors[k].is_lost:
            self.actors[k].__init__()
        return MACHINE, self.actors[k].worlds.batch is not None

    def cores(self, k, machine):
        return ()

    def close(self):
        pass


class Cluster:
    ray = Ray()

    def close(self):
        pass
