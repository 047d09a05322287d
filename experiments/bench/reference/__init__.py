"""The published algorithms in plain NumPy: the benches are measured against them, and the tests compare with them."""
