"""The quantile of the normal distribution, right far into its tails.

XLA:CPU takes 14 ns for the inverse of erf in float64. This takes 5 ns.
"""

import jax
import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.numerics.elementary import log, polynomial

# Numerators and denominators from the highest power to the lowest, for |probability - 1/2| up to `CENTRE`, for tails
# down to exp(-`FAR`^2), and beyond.
CENTRE, FAR = 0.425, 5.0
CENTRAL = (
    (
        2.5090809287301226727e3,
        3.3430575583588128105e4,
        6.7265770927008700853e4,
        4.5921953931549871457e4,
        1.3731693765509461125e4,
        1.9715909503065514427e3,
        1.3314166789178437745e2,
        3.3871328727963666080e0,
    ),
    (
        5.2264952788528545610e3,
        2.8729085735721942674e4,
        3.9307895800092710610e4,
        2.1213794301586595867e4,
        5.3941960214247511077e3,
        6.8718700749205790830e2,
        4.2313330701600911252e1,
        1.0,
    ),
)
TAIL = (
    (
        7.74545014278341407640e-4,
        2.27238449892691845833e-2,
        2.41780725177450611770e-1,
        1.27045825245236838258e0,
        3.64784832476320460504e0,
        5.76949722146069140550e0,
        4.63033784615654529590e0,
        1.42343711074968357734e0,
    ),
    (
        1.05075007164441684324e-9,
        5.47593808499534494600e-4,
        1.51986665636164571966e-2,
        1.48103976427480074590e-1,
        6.89767334985100004550e-1,
        1.67638483018380384940e0,
        2.05319162663775882187e0,
        1.0,
    ),
)
FAR_TAIL = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        1.24266094738807843860e-3,
        2.65321895265761230930e-2,
        2.96560571828504891230e-1,
        1.78482653991729133580e0,
        5.46378491116411436990e0,
        6.65790464350110377720e0,
    ),
    (
        2.04426310338993978564e-15,
        1.42151175831644588870e-7,
        1.84631831751005468180e-5,
        7.86869131145613259100e-4,
        1.48753612908506148525e-2,
        1.36929880922735805310e-1,
        5.99832206555887937690e-1,
        1.0,
    ),
)


@jax.jit
def normal_of(uniform: Array) -> Array:
    """Transforms uniform numbers to normal variables.

    Args:
        uniform: float (...), in [0, 1), multiples of the dtype's spacing below 2, as `random_bits.uniform` draws them.

    Returns:
        float (...), the quantile in the middle of each spacing. In float64 the relative error is 1e-15, and the tails
        end at 8.2; in float32 1e-6, and 5.3.

    Source: Wichura (1988), Algorithm AS 241, PPND16.
    """
    spacing = jnp.finfo(uniform.dtype).eps
    centred = (uniform - 0.5) + spacing / 2  # exact, and symmetric
    square = CENTRE**2 - centred * centred
    root = jnp.sqrt(-log(0.5 - jnp.abs(centred)))
    is_middle, is_far = jnp.abs(centred) <= CENTRE, root > FAR
    # One quotient instead of three: a CPU takes as long for a division as for ten additions.
    above, below = (
        jnp.where(is_middle, middle, jnp.where(is_far, far, tail))
        for middle, tail, far in zip(
            (polynomial(square, each) for each in CENTRAL),
            (polynomial(root - 1.6, each) for each in TAIL),
            (polynomial(root - FAR, each) for each in FAR_TAIL),
            strict=True,
        )
    )
    return (above / below) * jnp.where(is_middle, centred, jnp.where(centred < 0, -1, 1))
