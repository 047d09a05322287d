"""Distributed kernel bandits: agents that share what they learn of one function, at the price of communication.

Source: Pavlovic, Salgia and Zhao (2024), Order-Optimal Regret in Distributed Kernel Bandits using Uniform Sampling with
Shared Randomness.
"""
