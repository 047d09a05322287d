"""Mathematics without bandits: small linear algebra, experimental design, l1 programs, tracking, thresholds of tests.

Functions that are called once per problem check their arguments. Functions for inner loops check nothing: `linalg`,
`cholesky`, `kl`, `beta`, `binomial`, `blocked_argmax`, `compensated`, `loops`, and the posteriors of `gp`.
"""
