"""Types of the values that public functions and methods return; each documents the shapes of its arrays.

    found: featherlane.results.Linearization = featherlane.linearize(model, data)
    A, B = found.A, found.B

The types of `featherlane.lcp`, `tree`, `distributed` and `registration` belong to these modules.
"""

from featherlane.apps.doctor.finding import Finding
from featherlane.apps.viewer.view import View
from featherlane.engine.model.decomposition import Decomposition
from featherlane.engine.model.model import Statistics
from featherlane.engine.model.names import NamedView
from featherlane.engine.model.option import Option
from featherlane.engine.model.variants import Variants
from featherlane.engine.simulation.batch.failure import Failure
from featherlane.engine.simulation.frozen.world import FrozenBatch, FrozenWorld
from featherlane.engine.simulation.query.camera import Images
from featherlane.engine.simulation.query.contact import ContactLists
from featherlane.engine.simulation.query.contact_parameters import ContactParameters
from featherlane.engine.simulation.query.distance import Distances
from featherlane.engine.simulation.query.ray import Hits
from featherlane.engine.simulation.query.scan import Scan
from featherlane.engine.simulation.query.tendon_path import TendonPath
from featherlane.tools.integration.result import Integration, IntegrationStatus
from featherlane.tools.inverse_kinematics.result import IkSolution, IkStatus
from featherlane.tools.sensitivity.adjoint.rollout import RolloutGradient, RolloutState
from featherlane.tools.sensitivity.api.exact import AccelerationDerivatives
from featherlane.tools.sensitivity.api.rnea import RneaDerivatives
from featherlane.tools.sensitivity.api.transition import InverseDerivatives, Linearization

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
    "ContactParameters",
    "Distances",
    "Hits",
    "Images",
    "Scan",
    "TendonPath",
    # frozen worlds
    "FrozenBatch",
    "FrozenWorld",
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
