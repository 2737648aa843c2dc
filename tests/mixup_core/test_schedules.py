from mixup_core.laws import Erm, Midpoint
from mixup_core.schedules import Constant, Switch


def test_a_switch_changes_the_law_at_its_epoch() -> None:
    schedule = Switch(law=Midpoint(), switch_epoch=2, law_after=Erm())
    assert [schedule.law_at(epoch) for epoch in range(4)] == [Midpoint(), Midpoint(), Erm(), Erm()]
    assert Constant(law=Midpoint()).law_at(99) == Midpoint()
