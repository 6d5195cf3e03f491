"""Fields that join the rows of a tile with its LCP."""

from featherlane.lanes.layout import Field

FIELDS = (
    # parameters of contacts
    Field("con_frictionforce", "real", ("nconmax",), "1", "lcp: 1: sliding friction is a force", "make_lcp", "slot"),
    Field("con_erp", "real", ("nconmax",), "1", "lcp: ERP of the normal row", "make_lcp", "slot"),
    Field("con_cfm", "real", ("nconmax",), "m/(s N)", "lcp: CFM of the normal row", "make_lcp", "slot"),
    Field("con_restitution", "real", ("nconmax",), "1", "lcp: restitution", "make_lcp", "slot"),
    Field(
        "con_restitution_vel",
        "real",
        ("nconmax",),
        "m/s",
        "lcp: approach speed above which it acts",
        "make_lcp",
        "slot",
    ),
    Field(
        "con_compliance", "real", ("nconmax", 2), "m/(s N)", "lcp: CFM of the friction rows (slip)", "make_lcp", "slot"
    ),
    Field(
        "con_belt", "real", ("nconmax", 3), "m/s", "lcp: surface velocity along normal and tangents", "make_lcp", "slot"
    ),
    # where the rows stand
    Field(
        "con_lcprow",
        "int",
        ("nconmax",),
        "1",
        "lcp: row of the slot's normal; those of friction follow",
        "make_lcp",
        "slot",
    ),
    Field("dofrow_lcprow", "int", ("ndofrowmax",), "1", "lcp: row of the one-dof row", "make_lcp", "slot"),
    Field("genrow_lcprow", "int", ("ngenrowmax",), "1", "lcp: row of the general row", "make_lcp", "slot"),
    Field(
        "link_lcprow",
        "int",
        ("nlink", 2),
        "1",
        "lcp: first row of the link; that of its motor or stop, -1: none",
        "make_lcp",
        "slot",
    ),
    Field(
        "link_force",
        "real",
        ("nlink", 6),
        "N, N m",
        "force and torque on the first body at its com",
        "link_forces",
        "output",
    ),
    Field("lcp_scale", "real", ("nv",), "1/sqrt(kg)", "lcp: 1 / sqrt(D) of the factor in qH", "make_lcp", "scratch"),
)
