"""Frames and rules that several algorithms of the family share."""
