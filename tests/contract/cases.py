"""Every algorithm of every family. A case in this table must keep the promises of the contract."""

from contract import cpe, fullbandit, kcenter, kernel, linear, mab

CASES = linear.CASES | fullbandit.CASES | kcenter.CASES | cpe.CASES | kernel.CASES | mab.CASES
