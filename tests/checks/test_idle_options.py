"""An option that another one switches off is refused by name, not ignored."""

from functools import partial

import pytest

from jaxbandits import fullbandit, kcenter

DESIGN = fullbandit.make_design(fullbandit.all_superarms(4, 2), 2)
COINS = partial(kcenter.ns_ts, kcenter.Distances(7, 4, "bernoulli"), delta=0.1)


def test_printed_posterior_of_coins_is_refused():
    COINS()
    with pytest.raises(ValueError, match=r"^posterior must be 'conjugate' for Bernoulli noise, got 'printed'"):
        COINS(posterior="printed")


def test_drawn_lotteries_with_leaps_are_refused():
    make = partial(fullbandit.sa_foa, DESIGN, delta=0.1, epsilon=0.1, sampling=fullbandit.Sampling(lottery="draw"))
    make(pace=fullbandit.Pace(growth=None))
    with pytest.raises(ValueError, match=r"^pace.growth must be None if the lottery is drawn, got 0\.005"):
        make()
