"""Defines steps of one world and stages that need more than one call: `featherlane.step`, `featherlane.stages.rne`, ...

The functions here check arguments, take more arguments, return a result, or run several stages.  The public functions
of all other stages are generated in `stages.py`.

Every function raises TypeError if the data is not a `Data`, ModelError if the model is not the data's,
and RuntimeError while another thread is in a call of the data.
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.collision.collision import counted_collision
from featherlane.engine.dynamics.actuator.adhesion import adhesive_pull, contact_transmission
from featherlane.engine.dynamics.actuator.transmission import transmission as _transmission
from featherlane.engine.dynamics.body.kinematics import kinematics as _kinematics
from featherlane.engine.dynamics.body.newton_euler import rne as _rne
from featherlane.engine.dynamics.body.newton_euler import rne_acc
from featherlane.engine.dynamics.inertia.articulated import aba as _aba
from featherlane.engine.dynamics.inertia.joint_space import mul_m
from featherlane.engine.dynamics.integrator.integrate import advance
from featherlane.engine.dynamics.integrator.integrate import euler as _euler
from featherlane.engine.dynamics.passive.forces import passive as _passive
from featherlane.engine.model.assignment import flag
from featherlane.engine.model.enums import Enable
from featherlane.engine.model.integrator import SCHEMES, has_conversion, has_metric
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.simulation.query.product import from_fields
from featherlane.engine.simulation.stages import forward_velocity, frames
from featherlane.engine.simulation.step import forward as _contents
from featherlane.engine.simulation.step.consistency import compare_forward_inverse as _compare_forward_inverse
from featherlane.engine.simulation.step.early_contacts import early_contacts, forces_need_contacts
from featherlane.engine.simulation.step.inverse import inverse as _inverse
from featherlane.engine.simulation.world.data import Data, ready, run_measured, run_stage
from featherlane.engine.simulation.world.last_pass import kept_pass
from featherlane.errors import ModelError

# ---- whole steps -----------------------------------------------------------------------------------------------------


def forward(model: Model, data: Data) -> None:
    """Computes all derived fields of the present state, down to the acceleration `qacc`, without a step.

    With the flag `sleep`, this call may wake trees, but puts none to sleep.  A state or acceleration value that is NaN
    or beyond 1e10 is counted in `data.status`; the world is not reset.

    Source: MuJoCo mj_forward.
    """
    run_measured(model, data, kept_pass)


def forward_position(model: Model, data: Data) -> None:
    """Computes everything that depends on the position alone, except contacts.

    Runs `kinematics`, `com_pos`, `cameras`, `tendon`, `crb`, `factor_m`, `transmission`, and the position sensors.  If
    forces depend on contacts, these are found here, too.

    Source: MuJoCo mj_fwdPosition (without collisions and constraints).
    """
    run_stage(model, data, _contents.forward_position)
    if forces_need_contacts(model):
        run_stage(model, data, early_contacts)


# ---- inverse dynamics ------------------------------------------------------------------------------------------------


def inverse(model: Model, data: Data) -> None:
    """Computes inverse dynamics: the external force that gives the acceleration `data.qacc` in the present state.

    Writes `qfrc_inverse` (nv,) [N, N m]: the sum that `qfrc_applied`, `xfrc_applied` and the actuators have to provide.
    Also writes the fields on which this sum depends: contacts, rows, the rows' forces and `qfrc_constraint`.
    Constraint forces are computed directly, without a solver.  With the flag `invdiscrete` of `model.opt.enableflags`,
    `data.qacc` is the change of velocity over a step, divided by the time step, and the integrator's implicit damping
    is included.

    Raises:
        ModelError: `invdiscrete` with the integrator RK4; the contact model `lcp`, which has no inverse.

    Source: MuJoCo mj_inverse (under `invdiscrete` actuator forces are recomputed here).
    """
    check_inverse(model)
    ready(model, data)._kept[0] = 0
    run_measured(model, data, _inverse)


def check_inverse(model: Model) -> None:
    """Raises an error for options without inverse dynamics.

    Raises:
        ModelError: `invdiscrete` with the integrator RK4; the contact model `lcp`.
    """
    check_model(model)
    if model.opt.contact_model == "lcp":
        raise ModelError(
            "inverse: got contact_model 'lcp', allowed is 'convex': the forces of rigid contacts do "
            "not follow from qacc"
        )
    if model.opt.enableflags & Enable.INVDISCRETE and not (has_conversion(model) or has_metric(model)):
        name = SCHEMES[int(model.opt.integrator)].name
        raise ModelError(
            f"inverse: got invdiscrete with the integrator {name}, allowed are euler, implicit and implicitfast"
        )


def compare_forward_inverse(model: Model, data: Data) -> None:
    """Compares forward and inverse dynamics, after `forward`: `data.solver_fwdinv` (2,) [N, N m].

    Computes the norms of two differences: of `qfrc_constraint` and the forces computed directly from `qacc`; of the
    applied and actuator forces and `qfrc_inverse`.  Each step does so, too, if `opt.enableflags` has the bit `fwdinv`.

    Raises:
        ModelError: the contact model `lcp`, which has no inverse.

    Source: MuJoCo mj_compareFwdInv (which returns 0 if there are no constraints).
    """
    check_inverse(model)
    run_stage(model, data, _compare_forward_inverse)


# ---- position --------------------------------------------------------------------------------------------------------


def kinematics(model: Model, data: Data) -> None:
    """Computes frames of bodies, joints, geoms and sites from `qpos`, in world axes.

    Writes `xpos`, `xipos` (nbody, 3), `xanchor` (njnt, 3), `geom_xpos`, `site_xpos` [m], `xquat`, `xmat`, `xaxis`,
    `geom_xmat`, `site_xmat`.

    Source: MuJoCo mj_kinematics (`ximat` is written by `com_pos`, and qpos is not normalised); Featherstone sec. 4.4.
    """
    run_stage(model, data, _kinematics)
    frames(model, data)


def transmission(model: Model, data: Data) -> None:
    """Computes lengths and moments of the actuators; those on bodies act through the contacts of the last `collision`.

    Writes `actuator_length` (nout,) [m, rad] and `actuator_moment` (nmoment,), rows on the DoFs `moment_colind`.

    Source: MuJoCo mj_transmission (whose pattern depends on the state).
    """
    run_stage(model, data, _transmission)
    if model.nadhesion:
        run_stage(model, data, contact_transmission)


def collision(model: Model, data: Data) -> None:
    """Finds contacts of the present frames: `data.contact`, `data.ncon`.

    They have no rows until `make_constraint` runs.  Contacts beyond the capacity `data.nconmax` are dropped, the
    last ones first, and counted in `data.status`; the first time emits a `CapacityWarning`.

    Source: MuJoCo mj_collision.
    """
    run_stage(model, data, counted_collision)
    data.con_D[: data.workspace.arrays["ncon_slot"][0]] = 0.0


# ---- velocity --------------------------------------------------------------------------------------------------------


def passive(model: Model, data: Data) -> None:
    """Computes forces of springs, dampers, gravity compensation, a fluid and adhesive contacts.

    Writes `qfrc_spring`, `qfrc_damper`, `qfrc_gravcomp`, `qfrc_fluid`, `qfrc_adhesion` and their sum `qfrc_passive`,
    each (nv,) [N, N m].  Fluid forces need the result of `com_vel`; adhesive contacts are those of `collision`.

    Source: MuJoCo mj_passive.
    """
    check_model(model)
    if model.flg_adhesion:
        run_stage(model, data, adhesive_pull)
    run_stage(model, data, _passive)


def rne(model: Model, data: Data, flg_acc: bool = False) -> np.ndarray:
    """Computes the forces of given motion by the recursive Newton-Euler algorithm.

    Args:
        model: the model.
        data: the world, with `com_pos` and `com_vel` valid.
        flg_acc: False returns C(q, v), Coriolis, centrifugal and gravity forces; True adds the forces that accelerate
            the bodies by `data.qacc`.

    Returns:
        (nv,) [N, N m], a copy; without acceleration it is also `data.qfrc_bias`.

    Source: Featherstone sec. 5.3, table 5.1; MuJoCo mj_rne.

    Note:
        Armature is not part of a body: M qacc includes it, this result does not.
    """
    accelerated = flag("flg_acc", flg_acc)
    run_stage(model, data, rne_acc if accelerated else _rne)
    return (data.qvec if accelerated else data.qfrc_bias).copy()


# ---- force and acceleration ------------------------------------------------------------------------------------------


def aba(model: Model, data: Data) -> None:
    """Computes `qacc_smooth` (nv,) [m/s^2, rad/s^2] from forces by the articulated-body algorithm in O(nv), without M.

    Reads what `com_vel`, `passive` and `actuation` wrote, and the applied forces.

    Raises:
        ModelError: a tendon has armature, which a recursion over bodies cannot include.

    Source: Featherstone sec. 7.3, table 7.1 (armature adds to D).
    """
    check_model(model)
    heavy = (model.tendon_armature != 0.0) | (model.tendon_actuatorid != -1)
    if heavy.any():
        tendon = model.names("tendon")[heavy.argmax()] or f"#{heavy.argmax()}"
        raise ModelError(f"aba: got armature of tendon {tendon!r}, allowed are models without tendon armature")
    run_stage(model, data, _aba)


def inverse_smooth(model: Model, data: Data) -> np.ndarray:
    """Computes inverse dynamics without constraints: the force that gives `data.qacc` in the present state.

    tau = M qacc + C(q, v) - passive forces, all recomputed from `qpos`, `qvel` and `qacc`.

    Returns:
        (nv,) [N, N m]: the sum that actuators, `qfrc_applied` and `xfrc_applied` have to provide.

    Source: Featherstone eq. 5.1; MuJoCo mj_inverse (which uses recursive Newton-Euler, and subtracts
    constraint forces, too).
    """
    forward_position(model, data)
    forward_velocity(model, data)
    return from_fields(data, data.qacc, mul_m, "qproduct") + data.qfrc_bias - data.qfrc_passive


# ---- integration -----------------------------------------------------------------------------------------------------


def euler(model: Model, data: Data) -> None:
    """Advances by semi-implicit Euler with implicit joint damping, from the present `qacc`: `qvel`, `qpos`, `time`.

    With the contact model `lcp`, `qacc` already includes damping.

    Source: MuJoCo mj_Euler.
    """
    check_model(model)
    run_stage(model, data, advance if model.opt.contact_model == "lcp" else _euler)


def runge_kutta(model: Model, data: Data) -> None:
    """Advances by a fourth-order step, after `forward`: three more accelerations, then `qvel`, `qpos`, `time`.

    The model's integrator is ignored, as by all functions here that take a step.

    Source: MuJoCo mj_RungeKutta(4).
    """
    run_stage(model, data, _contents.classical_runge_kutta)


# ---- states ----------------------------------------------------------------------------------------------------------


def reset_data(model: Model, data: Data) -> None:
    """Resets the data to the model's default state: qpos0, zero velocities and forces; all derived fields zero.

    Source: MuJoCo mj_resetData.
    """
    ready(model, data).reset()


def reset_data_keyframe(model: Model, data: Data, key: str | int) -> None:
    """Resets the data to a keyframe, by name or number.

    Raises:
        UnknownNameError: an unknown keyframe.

    Source: MuJoCo mj_resetDataKeyframe.
    """
    ready(model, data).reset(keyframe=key)
