"""Thousands of tasks in this process: lanes, programs, the queue."""
