"""The constants of lil'UCB."""

import numpy as np

from jaxbandits import mab


def test_lil_ucb_constants_by_hand():
    constants = mab.lil_ucb_constants(0.1)
    np.testing.assert_allclose(constants, [0.01, 1, 9, 2.8155e-8], rtol=1e-4)
    c = 2.01 / 0.01 * np.log(1.01) ** -1.01
    np.testing.assert_allclose(4 * np.sqrt(c * constants.delta) + 4 * c * constants.delta, 0.1)
