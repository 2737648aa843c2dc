"""Laws: distributions of the mixing weight lam, as frozen dataclasses. Plugins may add more.

Each built-in law has its own file; this package registers them all. A schedule
(`mixup_core.laws.schedules`) changes the law during training.
"""

from mixup_core.laws.beta import Beta
from mixup_core.laws.beta_ab import BetaAb
from mixup_core.laws.discrete import Discrete
from mixup_core.laws.erm import Erm
from mixup_core.laws.law import Law
from mixup_core.laws.midpoint import Midpoint
from mixup_core.laws.truncated import Truncated

Law.catalogue.add(Erm, Midpoint, Beta, BetaAb, Discrete, Truncated)

__all__ = ["Beta", "BetaAb", "Discrete", "Erm", "Law", "Midpoint", "Truncated"]
