"""Parts that several algorithms of the family share."""
