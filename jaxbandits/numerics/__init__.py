"""Mathematics without bandits: small linear algebra, experimental design, l1 programs, tracking of proportions.

Functions that are called once for a problem check their arguments. Those of inner loops (`linalg`, `cholesky`, `kl`,
`beta`, `blocks`, `compensated`, `trips`, the posteriors of `gp`) take arrays as they are described and check nothing.
"""
