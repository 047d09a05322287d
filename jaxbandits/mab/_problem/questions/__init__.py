"""Questions about the means of the arms, one file each: its struct, its functions, and `KIND`, which collects them."""
