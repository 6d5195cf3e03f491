"""Fields of the mass matrix M, its factorization, and articulated-body inertias."""

from featherlane.engine.lanes.layout import Declare
from featherlane.engine.spatial.types import Force, Inertia

_crb_detail = Declare("crb", "detail", condition="want_all")
_output = Declare("crb", "output", condition="want_all")
_factor_m_detail = Declare("factor_m", "detail", condition="want_all")
_aba_scratch = Declare("aba", "scratch")
_solve_m_scratch = Declare("solve_m", "scratch")
_mul_m_scratch = Declare("mul_m", "scratch")

FIELDS = (
    _crb_detail.rows(Inertia, "crb", "nbody", "kg m^2, kg m, kg", "composite rigid body inertia"),
    _output.real("M", "nC", "kg, kg m, kg m^2", "joint-space inertia matrix, lower triangle by rows (CSR)"),
    _factor_m_detail.real("qLD", "nC", "1", "M = L^T D L: strict lower rows of L, D on the diagonal"),
    _factor_m_detail.real("qLDiagInv", "nv", "1/(kg m^2)", "1 / D"),
    _aba_scratch.real("aba_inertia", "nbody 21", "kg m^2, kg m, kg", "articulated inertia, lower triangle"),
    _aba_scratch.rows(Force, "aba_axis", "nv", "1", "articulated inertia times axis, over D"),
    _solve_m_scratch.real("qvec", "nv", "1", "right-hand side or product of one call from Python"),
    _mul_m_scratch.real("qproduct", "nv", "1", "product M qvec"),
)
