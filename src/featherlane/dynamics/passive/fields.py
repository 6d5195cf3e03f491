"""Fields of passive forces: springs, dampers, gravity compensation, media, adhesion."""

from featherlane.lanes.layout import Field

FIELDS = (
    Field("qfrc_spring", "real", ("nv",), "N, N m", "joint spring force", "passive", "output"),
    Field("qfrc_damper", "real", ("nv",), "N, N m", "joint damper force", "passive", "output"),
    Field("qfrc_gravcomp", "real", ("nv",), "N, N m", "gravity compensation", "passive", "output"),
    Field("qfrc_fluid", "real", ("nv",), "N, N m", "fluid force", "passive", "output", asked="want_all"),
    Field("qfrc_adhesion", "real", ("nv",), "N, N m", "pull of adhesive contacts", "passive", "output"),
    Field("qfrc_passive", "real", ("nv",), "N, N m", "total passive force", "passive", "output"),
    Field(
        "cfrc_fluid",
        "real",
        ("nbody", 6),
        "N m, N",
        "composite: wrench of the medium, at the tree's com",
        "passive",
        "scratch",
    ),
    Field(
        "crb_drag",
        "real",
        ("nbody", 36),
        "N s/m, N m s/rad",
        "composite: its rates by the velocity",
        "smooth_vel",
        "room",
    ),
)
