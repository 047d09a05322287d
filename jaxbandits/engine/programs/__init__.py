"""Programs of this process: what makes two traced ones the same, and a cache of the compiled ones."""
