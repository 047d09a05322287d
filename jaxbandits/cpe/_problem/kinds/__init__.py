"""Kinds of problems, one file each: its struct, its constructor, its functions, and `KIND`, which collects them."""
