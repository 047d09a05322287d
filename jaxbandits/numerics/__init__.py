"""Mathematics without bandits: small linear algebra, experimental design, l1 programs, tracking, thresholds of tests.

Functions that are called once for a problem check their arguments. Those of inner loops (`linalg`, `cholesky`, `kl`,
`beta`, `binomial`, `blocks`, `compensated`, `trips`, the posteriors of `gp`) take arrays as they are described and
check nothing.
"""
