"""Parts shared by several algorithms of the family."""
