"""Questions about the means of the items, one file each: `KIND` collects its functions."""
