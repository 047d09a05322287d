"""The flags that the tests give to XLA."""

from drivers.flags import known_flags


def test_known_flags_drops_the_one_that_xla_does_not_know():
    known = "--xla_backend_optimization_level=1"
    assert known_flags([known, "--xla_no_such_flag=true"]) == [known]
    assert known_flags([known]) == [known]
