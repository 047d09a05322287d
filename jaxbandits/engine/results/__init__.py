"""Columns of finished runs, with statistics, comparisons and plots of them."""
