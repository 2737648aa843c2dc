"""submit: what it says about places on the cluster."""

from sweeps.commands.submission import _shown_store


def test_a_job_uses_the_store_given_as_an_option() -> None:
    places = {"--home": "/runs", "--store": "s3://studies/team"}
    assert _shown_store(places, "s3://studies/team") == "s3://studies/team on the cluster"


def test_a_job_without_a_store_option_may_use_the_variable_of_the_head() -> None:
    said = _shown_store({"--home": "/runs"}, "/runs/store")
    assert said == (
        "/runs/store on the cluster, unless MIXSWEEP_STORE was set when its head node was started"
    )
