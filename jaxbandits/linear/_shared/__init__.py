"""What several algorithms of the family share."""
