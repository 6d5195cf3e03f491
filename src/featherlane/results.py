"""Types of the values that public functions and methods return; each documents the shapes of its arrays.

    found: featherlane.results.Linearization = featherlane.linearize(model, data)
    A, B = found.A, found.B

The types of `featherlane.lcp`, `tree`, `distributed` and `registration` belong to these modules.
"""

from featherlane.doctor.finding import Finding
from featherlane.model.decomposition import Decomposition
from featherlane.model.model import Statistics
from featherlane.model.names import NamedView
from featherlane.model.option import Option
from featherlane.model.variants import Variants
from featherlane.sensitivity.adjoint.rollout import RolloutGradient, RolloutState
from featherlane.sensitivity.api.exact import AccelerationDerivatives
from featherlane.sensitivity.api.rnea import RneaDerivatives
from featherlane.sensitivity.api.transition import InverseDerivatives, Linearization
from featherlane.simulation.batch.failure import Failure
from featherlane.simulation.integration.result import Integration, IntegrationStatus
from featherlane.simulation.inverse_kinematics.result import IkSolution, IkStatus
from featherlane.simulation.query.camera import Images
from featherlane.simulation.query.contact import ContactLists
from featherlane.simulation.query.distance import Distances
from featherlane.simulation.query.ray import Hits
from featherlane.simulation.query.scan import Scan
from featherlane.simulation.query.tendon_path import TendonPath
from featherlane.viewer.view import View

__all__ = [  # noqa: RUF022  in groups
    # derivatives
    "AccelerationDerivatives",
    "InverseDerivatives",
    "Linearization",
    "RneaDerivatives",
    "RolloutGradient",
    "RolloutState",
    # integration
    "Integration",
    "IntegrationStatus",
    # inverse kinematics
    "IkSolution",
    "IkStatus",
    # queries
    "ContactLists",
    "Distances",
    "Hits",
    "Images",
    "Scan",
    "TendonPath",
    # models
    "Decomposition",
    "NamedView",
    "Option",
    "Statistics",
    "Variants",
    # diagnostics
    "Failure",
    "Finding",
    # viewer
    "View",
]
