"""Mathematics that knows no bandit: small linear algebra, experimental design, L1 programs, tracking of proportions."""
