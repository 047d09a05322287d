"""The algorithms in NumPy, vectorised over the seeds: (K, lanes) arrays, and one loop over the rounds for all runs.

This is how an experienced user writes a simulation without this library. The lanes are the last axis: NumPy is fast
along long axes. Each rule equals, lane by lane and step by step, the plain transcription in
`experiments.bench.reference`, except that the first arm wins ties.
"""
