"""Fields of the inertia matrix M, its factor, and the articulated inertias that need neither."""

from featherlane.lanes.layout import Field

FIELDS = (
    Field(
        "crb",
        "real",
        ("nbody", 10),
        "kg m^2, kg m, kg",
        "composite rigid body inertia",
        "crb",
        "detail",
        asked="want_all",
    ),
    Field(
        "M",
        "real",
        ("nC",),
        "kg, kg m, kg m^2",
        "joint-space inertia matrix, lower triangle by rows (CSR)",
        "crb",
        "output",
        asked="want_all",
    ),
    Field(
        "qLD",
        "real",
        ("nC",),
        "1",
        "M = L^T D L: strict lower rows of L, D on the diagonal",
        "factor_m",
        "detail",
        asked="want_all",
    ),
    Field("qLDiagInv", "real", ("nv",), "1/(kg m^2)", "1 / D", "factor_m", "detail", asked="want_all"),
    Field(
        "aba_inertia",
        "real",
        ("nbody", 21),
        "kg m^2, kg m, kg",
        "articulated inertia, lower triangle",
        "aba",
        "scratch",
    ),
    Field("aba_axis", "real", ("nv", 6), "1", "articulated inertia times axis, over D", "aba", "scratch"),
    Field("qvec", "real", ("nv",), "1", "right-hand side or product of one call from Python", "solve_m", "scratch"),
    Field("qproduct", "real", ("nv",), "1", "product M qvec", "mul_m", "scratch"),
)
