"""Laws: how the weight lam of an image is distributed. Plain values, an open choice.

A law is one file that is named here. How the law changes during training is a schedule
(`mixup_core.laws.schedules`).
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
