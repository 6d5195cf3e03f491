"""Fields of the primal solvers, Newton and CG."""

from featherlane.engine.lanes.layout import Declare
from featherlane.engine.spatial.types import Vec3

_primal = Declare("solve", "slot", record="primal")
_primal_scratch = Declare("solve", "scratch", record="primal")
_krylov = Declare("solve", "scratch", record="krylov")
_coulomb = Declare("solve", "scratch", record="coulomb")
_table = Declare("solve", "table", condition="want_history")

FIELDS = (
    # rows at the present point, along the search direction, at the warm start
    _primal.rows(Vec3, "con_y", "2 nconmax", "m/s^2", "J a - aref along the contact's basis"),
    _primal.rows(Vec3, "con_z", "2 nconmax", "m/s^2", "J p along the contact's basis"),
    _primal.rows(Vec3, "con_warm", "2 nconmax", "m/s^2", "J a - aref at the warm start"),
    _primal.real("row_x", "nrowmax", "m/s^2, rad/s^2", "J a - aref"),
    _primal.real("row_v", "nrowmax", "m/s^2, rad/s^2", "J p"),
    _primal_scratch.real("Ma", "nv", "N, N m", "M a"),
    _primal_scratch.real("Mv", "nv", "N, N m", "M p"),
    _primal_scratch.real("grad", "nv", "N, N m", "gradient of the cost"),
    _primal_scratch.real("search", "nv", "m/s^2, rad/s^2", "search direction p"),
    _primal_scratch.real("Mgrad", "nv", "m/s^2, rad/s^2", "M^-1 grad"),
    _primal_scratch.real("grad_old", "nv", "N, N m", "grad of the previous iteration"),
    _primal_scratch.real("Mgrad_old", "nv", "m/s^2, rad/s^2", "Mgrad of the previous iteration"),
    _primal_scratch.real("terms", "nv", "N, N m", "sum of the absolute terms of the gradient"),
    _primal_scratch.real(
        "contested", "nv", "N, N m", "part of `terms` that acts on the dof's inertia, not on other rows"
    ),
    _primal_scratch.real("grad_kept", "nv", "N, N m", "grad before a change of the acceleration by its rounding"),
    _primal_scratch.real("live", "1", "1", "1: the solver continues in this world"),
    _primal.int("slot", "nconmax", "1", "contact slots of worlds that the solver continues, ascending"),
    _primal_scratch.int("nslot", "1", "1", "number of these slots"),
    # Krylov vectors of the Coulomb solver
    _krylov.real("newton", "nv", "m/s^2, rad/s^2", "Newton's direction with fixed friction bounds"),
    _krylov.real("x", "nv", "m/s^2, rad/s^2", "Newton's direction with moving friction bounds"),
    _krylov.real("r", "nv", "m/s^2, rad/s^2", "residual of x"),
    _krylov.real("image", "nv", "m/s^2, rad/s^2", "H^-1 N r"),
    _krylov.real("rate", "nconmax", "kg s^2/m", "D / T of slipping contacts, else 0"),
    _krylov.real("p", "6 nv", "m/s^2, rad/s^2", "directions of x"),
    _krylov.real("q", "6 nv", "m/s^2, rad/s^2", "images of the directions, orthogonal to each other"),
    # the problems of the Coulomb solver
    _coulomb.rows(Vec3, "friction", "2 nconmax", "N, N m", "friction along the contact's basis, an unknown"),
    _coulomb.rows(Vec3, "zone", "2 nconmax", "1", "w [kg] across the slip, then the direction t of slipping friction"),
    _coulomb.rows(Vec3, "trial", "2 nconmax", "N, N m", "trial force; and work arrays"),
    _coulomb.int("pushes", "nconmax", "1", "1: a contact of the slot pushes in a world that continues"),
    _coulomb.int("fixed", "1", "1", "the next line search has 1: fixed friction bounds, 0: the linear model"),
    _coulomb.real("warm", "nv", "m/s^2, rad/s^2", "acceleration of the warm start"),
    _coulomb.real("start", "nv", "m/s^2, rad/s^2", "acceleration before the first proximal problem"),
    _coulomb.real("good", "nv", "m/s^2, rad/s^2", "solution of the last problem"),
    _coulomb.rows(Vec3, "force", "2 nconmax", "N, N m", "proximal forces along the contact's basis"),
    _coulomb.real("D", "nconmax", "kg", "con_D of the law"),
    _coulomb.real("Dt", "nconmax", "kg", "con_Dt of the law"),
    _coulomb.real("row_D", "nrowmax", "kg, kg m^2", "row_D of friction loss, of the law"),
    # iteration statistics of a solve
    _table.real("stat_cost", "nrecord", "1", "scaled cost at the start and after each iteration"),
    _table.real("stat_gradient", "nrecord", "1", "norm of the scaled gradient at these points"),
    _table.real("stat_improvement", "nrecord", "1", "decrease of the cost in each iteration"),
    _table.real("stat_step", "nrecord", "1", "step length in units of the search direction; PGS: momentum"),
)
