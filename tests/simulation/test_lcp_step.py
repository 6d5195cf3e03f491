"""The step under the contact model lcp: its LCP from the definition, and the laws that a user checks."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import EQUALITY, FRICTION_DOF, FRICTION_TENDON, Disable, Enable
from featherlane.engine.simulation.step.forward import forward, step
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.lcp.status import UNSETTLED
from oracles.efc import body_jacobian
from scenes.lcp import lcp_model

RESTATED = 1e-10  # relative: one LCP assembled twice in float64
RESIDUAL = 1e-9  # relative to the largest force: error of a pivoting solver
SAME_MOTION = 1e-6  # relative: iterative solvers at a residual of 1e-12, dependent rows


def lane(arrays, k: int):
    """Returns one world's values of a tile."""
    return {name: a[:, k] if a.ndim == 2 else a for name, a in arrays.items()}


# ---- the LCP from its definition -------------------------------------------------------------------------------------
def full_inertia(model, d):
    """Returns M + h B, B the damping of the joints."""
    M = np.zeros((model.nv, model.nv))
    for i in range(model.nv):
        row = slice(model.M_rowadr[i], model.M_rowadr[i] + model.M_rownnz[i])
        M[i, model.M_colind[row]] = M[model.M_colind[row], i] = d["M"][row]
    return M + model.opt.timestep * np.diag(
        model.dof_damping[:, 0] if model.dof_damping.ndim > 1 else model.dof_damping
    )


def joint_rows(model, d):
    """Returns (J, c, cfm, lo, hi, mu, normal) of each row that is not a contact, and its force."""
    h, erp, rows = model.opt.timestep, model.opt.erp, []
    for k in range(d["nrow"][0]):
        if d["row_present"][k] == 0.0:
            continue
        J, kind = np.zeros(model.nv), d["row_type"][k]
        at = slice(d["row_dofadr"][k], d["row_dofadr"][k] + d["row_dofnum"][k])
        J[d["row_dof"][at]] = d["row_J"][at]
        err, lo, hi = d["row_pos"][k] - d["row_margin"][k], 0.0, np.inf
        if kind in (FRICTION_DOF, FRICTION_TENDON):
            err, lo, hi = 0.0, d["row_lo"][k], d["row_hi"][k]
        elif kind == EQUALITY:
            lo = -np.inf
        rows.append((J, -erp / h * err, model.opt.cfm, lo, hi, 0.0, -1, d["row_force"][k]))
    return rows


def contact_rows(model, d, first: int):
    """Returns the same for contacts; `first` is the number of the first row."""
    h, rows = model.opt.timestep, []
    for k in range(d["ncon_slot"][0]):
        depth = d["con_includemargin"][k] - d["con_dist"][k]
        if d["con_present"][k] == 0.0 or depth < 0.0:
            continue
        point, normal = d["con_pos"][3 * k :][:3], first + len(rows)
        bodies = d["con_carrier"][2 * k :][:2]
        J = body_jacobian(model, d, bodies[1], point) - body_jacobian(model, d, bodies[0], point)
        J = np.kron(np.eye(2), d["con_frame"][9 * k :][:9].reshape(3, 3)) @ J
        for c in range(d["con_dim"][k]):
            x = d["con_force"][6 * k + c]
            if c == 0:
                rows.append((J[0], model.opt.erp / h * depth, model.opt.cfm, 0.0, np.inf, 0.0, -1, x))
            else:
                rows.append((J[c], 0.0, model.opt.cfm, 0.0, 0.0, d["con_friction"][5 * k + c - 1], normal, x))
    return rows


def restated(model, d):
    """Returns A, b, the bounds in effect at the engine's forces x, x, J and Mh of one world's step."""
    rows = joint_rows(model, d)
    rows += contact_rows(model, d, len(rows))
    J, c, cfm, lo, hi, mu, normal, x = (np.array(column) for column in zip(*rows, strict=True))
    h, Mh = model.opt.timestep, full_inertia(model, d)
    A = J @ np.linalg.solve(Mh, J.T) + np.diag(cfm / h)
    b = c / h - J @ (d["qvel"] / h + np.linalg.solve(Mh, d["qfrc_smooth"]))
    limit = np.where(normal >= 0, mu * x[normal], 0.0)
    return A, b, np.where(normal >= 0, -limit, lo), np.where(normal >= 0, limit, hi), x, J, Mh


def kick(model, w, rng):
    """Sets worlds to different states: hinges and ball of the arm beyond their limits, all with velocities."""
    for k in range(w.width):
        w.arrays["qpos"][:, k] = model.qpos0
        w.arrays["qpos"][:2, k] += [0.75, -0.6] if k % 2 == 0 else [-0.5, 0.6]
        w.arrays["qpos"][2:6, k] = [np.cos(0.3), 0, np.sin(0.3), 0]
        w.arrays["qvel"][:, k] = rng.uniform(-0.5, 0.5, model.nv)
    w.arrays["active"][...] = 1.0


def check_forces(model, d):
    """Checks that one world's forces solve its LCP, and that its acceleration follows from them."""
    A, b, lo, hi, x, J, Mh = restated(model, d)
    size = np.abs(x).max()
    moves = A.diagonal() > 0.0  # an arm in a plane is insensitive to some rotations of its contacts
    step_of_row = np.divide(A @ x - b, A.diagonal(), out=x.copy(), where=moves)
    np.testing.assert_allclose(x, np.clip(x - step_of_row, lo, hi), rtol=0, atol=RESIDUAL * size)
    np.testing.assert_allclose(d["qfrc_constraint"], J.T @ x, rtol=0, atol=RESTATED * size)
    qacc = np.linalg.solve(Mh, d["qfrc_smooth"] + J.T @ x)
    np.testing.assert_allclose(d["qacc"], qacc, rtol=0, atol=RESTATED * np.abs(qacc).max())


@pytest.mark.parametrize("width", [1, 8])
def test_the_forces_solve_the_lcp_of_the_step(width, rng):
    model, kinds, unsettled = lcp_model(cfm=1e-5), set(), 0
    w = Workspace(model, width)
    kick(model, w, rng)
    for settle in (0, 8):
        for _ in range(settle):
            w.run(step)
        w.run(forward)
        for k in range(width):
            d = lane(w.arrays, k)
            if d["lcp.status"][0] == UNSETTLED:
                unsettled += 1  # pivoting found no consistent friction limits
                continue
            check_forces(model, d)
            kinds |= {*d["row_type"][: d["nrow"][0]]}
            kinds |= {10 + dim for dim in d["con_dim"][: d["ncon_slot"][0]]}
    assert len(kinds) >= 8 and unsettled <= width // 4


def test_every_solver_finds_the_same_motion(rng):
    model = lcp_model(cfm=1e-4, lcp_iterations=3000, lcp_tolerance=1e-12)
    found = []
    for solver in ("dantzig", "pgs", "apgd"):
        model.opt.lcp_solver = solver
        w = Workspace(model, 1)
        kick(model, w, np.random.default_rng(3))
        w.run(forward)
        found.append(w.arrays["qacc"][:, 0].copy())
        assert w.arrays["warning"][3, 0] == 0
    for qacc in found[1:]:
        np.testing.assert_allclose(qacc, found[0], rtol=0, atol=SAME_MOTION * np.abs(found[0]).max())


@pytest.mark.parametrize("solver", ["dantzig", "pgs", "apgd"])
def test_a_world_moves_equally_in_any_batch(solver, rng):
    model = lcp_model(solver=solver, lcp_iterations=30)
    tile = Workspace(model, 8)
    kick(model, tile, rng)
    states = tile.arrays["qpos"].copy(), tile.arrays["qvel"].copy()
    for _ in range(6):
        tile.run(step)
    for k in range(8):
        alone = Workspace(model, 1)
        alone.arrays["qpos"][:, 0], alone.arrays["qvel"][:, 0] = (x[:, k] for x in states)
        alone.arrays["active"][...] = 1.0
        for _ in range(6):
            alone.run(step)
        for name in ("qpos", "qvel", "qacc", "qfrc_constraint", "solver_residual", "solver_niter"):
            np.testing.assert_array_equal(alone.arrays[name][:, 0], tile.arrays[name][:, k], err_msg=name)


def test_unsupported_options_are_refused():
    model = lcp_model()
    data = fl.Data(model)
    fl.forward(model, data)
    for refused in (fl.inverse, fl.stages.compare_forward_inverse, fl.inverse_derivatives):
        with pytest.raises(fl.ModelError):
            refused(model, data)
    with pytest.raises(fl.ModelError):
        _ = data.efc_J
    with pytest.raises(fl.UnsupportedFeatureError):
        model.opt.integrator = "rk4"
    with pytest.raises(fl.UnsupportedFeatureError):
        model.opt.enableflags = Enable.SLEEP
    model.opt.contact_model = "convex"
    fl.inverse(model, data)


@pytest.mark.parametrize("flag", ["constraint", "contact", "limit", "equality", "frictionloss"])
def test_rows_can_be_switched_off(flag):
    model = lcp_model()
    w = Workspace(model, 1)
    kick(model, w, np.random.default_rng(3))
    w.run(forward)
    every = rows_by_kind(w.arrays)
    model.opt.disableflags = Disable[flag.upper()]
    w.run(forward)
    kinds = {"contact": {"contact"}, "limit": {3, 4}, "equality": {0}, "frictionloss": {1, 2}}.get(flag, set(every))
    assert kinds <= set(every) and rows_by_kind(w.arrays) == {k: n for k, n in every.items() if k not in kinds}


def rows_by_kind(a):
    """Returns the number of rows of each kind in a tile's LCP."""
    kinds = [int(k) for k in a["row_type"][: a["nrow"][0]]]
    kinds += ["contact"] * sum(a["con_dim"][: a["ncon_slot"][0]][a["con_lcprow"][: a["ncon_slot"][0]] >= 0])
    assert len(kinds) == a["lcp.n"][0]
    return {kind: kinds.count(kind) for kind in set(kinds)}


def test_a_tile_whose_rows_do_not_fit_is_split(rng):
    model = lcp_model(lcp_friction="frozen")
    whole = Workspace(model, 8)
    kick(model, whole, rng)
    whole.arrays["qpos"][8:11] += rng.uniform(-0.02, 0.02, (3, 8))  # different contacts in each world
    tile = Workspace(model, 8)
    for name in ("qpos", "qvel", "active"):
        tile.arrays[name][...] = whole.arrays[name]
    whole.run(forward)
    most = max(int(np.count_nonzero(whole.arrays["lcp.x"][: whole.arrays["lcp.n"][0], k])) for k in range(8))
    assert most < whole.arrays["lcp.n"][0]
    tile.record.set_size("nlcp", int(whole.arrays["lcp.n"][0]) - 1)
    tile.run(forward)
    for name in ("qacc", "qfrc_constraint", "solver_niter", "warning"):
        np.testing.assert_array_equal(tile.arrays[name], whole.arrays[name], err_msg=name)

    alone = Workspace(model, 1)
    for name in ("qpos", "qvel", "active"):
        alone.arrays[name][:, 0] = whole.arrays[name][:, 0]
    alone.record.set_size("nlcp", 20)
    alone.run(forward)
    assert alone.arrays["warning"][1, 0] == 1 and np.isfinite(alone.arrays["qacc"]).all()
