"""Choices of a training configuration: network, optimizer, learning rate and average of weights."""
