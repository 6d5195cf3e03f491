"""Runs one MJCF model in MuJoCo and under each contact model of Featherlane, with one interface.

Energies, momenta and penetrations of all engines are computed by MuJoCo from the state, so they share no code with the
engine that produced it.
"""

from __future__ import annotations

import mujoco
import numpy as np

import featherlane as fl

MUJOCO = "MuJoCo"
# options of Featherlane's model by the name of an engine
ENGINES = {
    MUJOCO: {},
    "convex": {"contact_model": "convex"},
    "lcp": {"contact_model": "lcp"},
    "lcp consistent": {"contact_model": "lcp", "lcp_friction": "consistent"},
    "coulomb": {"contact_model": "coulomb"},
}
RIGID = ("lcp", "lcp consistent", "coulomb")  # their friction refuses `noslip_iterations`


class Run:
    """One world of a model in an engine.

    Args:
        text: MJCF text, or the path of an MJCF or URDF file.
        engine: one of `ENGINES`.
        **options: further options of Featherlane's model; MuJoCo ignores them.

    Attributes:
        data: a `mujoco.MjData` or a `featherlane.Data`: `qpos`, `qvel`, `ctrl`, `xfrc_applied` and others.
        measured: MuJoCo's model and data, on which the state is measured.
    """

    def __init__(self, text: str, engine: str, **options):
        read = mujoco.MjModel.from_xml_string if text.lstrip().startswith("<") else mujoco.MjModel.from_xml_path
        self.engine, self.mj = engine, read(text)
        self.measured = mujoco.MjData(self.mj)
        if engine == MUJOCO:
            self.model, self.data = self.mj, mujoco.MjData(self.mj)
        else:
            self.model = fl.load(text)
            for name, value in (ENGINES[engine] | options).items():
                setattr(self.model.opt, name, value)
            self.data = fl.Data(self.model)

    @property
    def timestep(self) -> float:
        """Step size [s]."""
        return float(self.mj.opt.timestep)

    def step(self, seconds: float | None = None) -> None:
        """Advances by one step, or by this time."""
        for _ in range(1 if seconds is None else round(seconds / self.timestep)):
            if self.engine == MUJOCO:
                mujoco.mj_step(self.model, self.data)
            else:
                fl.step(self.model, self.data)

    def unconverged(self) -> int:
        """Returns the steps whose solver did not converge; 0 for MuJoCo, which does not report them."""
        return 0 if self.engine == MUJOCO else int(np.sum(self.data.status["not_converged"]))

    def residual(self) -> float:
        """Returns the residual of the last solve, in the units of its solver."""
        if self.engine != MUJOCO:
            return float(np.asarray(self.data.solver_residual).ravel()[0])
        last = int(self.data.solver_niter[0])
        return float(self.data.solver.gradient[last - 1]) if last else 0.0

    def measure(self) -> mujoco.MjData:
        """Returns MuJoCo's kinematics, contacts and inertia of the current state."""
        self.measured.qpos[:], self.measured.qvel[:] = self.data.qpos, self.data.qvel
        mujoco.mj_fwdPosition(self.mj, self.measured)
        mujoco.mj_fwdVelocity(self.mj, self.measured)
        return self.measured

    def energy(self) -> float:
        """Returns the kinetic and potential energy of the state [J]."""
        d = self.measure()
        mujoco.mj_energyPos(self.mj, d)
        mujoco.mj_energyVel(self.mj, d)
        return float(d.energy.sum())

    def momentum(self) -> np.ndarray:
        """Returns the linear momentum of all bodies (3,) [kg m/s]."""
        d = self.measure()
        mujoco.mj_subtreeVel(self.mj, d)
        return self.mj.body_subtreemass[0] * d.subtree_linvel[0]

    def penetration(self) -> float:
        """Returns the deepest penetration of a contact of the state [m]."""
        return float(max(0.0, -self.measure().contact.dist.min(initial=0.0)))

    def slip(self) -> float:
        """Returns the largest tangential speed of a touching contact of the state [m/s]."""
        d, fastest = self.measure(), 0.0
        for k in np.flatnonzero(d.contact.dist < 0.0):
            jacobians = np.zeros((2, 3, self.mj.nv))
            for side in range(2):
                body = self.mj.geom_bodyid[d.contact.geom[k, side]]
                mujoco.mj_jac(self.mj, d, jacobians[side], None, d.contact.pos[k], body)
            speed = (jacobians[1] - jacobians[0]) @ d.qvel
            fastest = max(fastest, float(np.linalg.norm(d.contact.frame[k].reshape(3, 3)[1:] @ speed)))
        return fastest
