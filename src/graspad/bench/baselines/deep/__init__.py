"""What the deep baselines share; none of them has a loop of its own.

method.py     Deep: a method is a network, a loss and an error per window
train.py      the training loop, early stopping, seeds
scaling.py    by the statistics of the training rows, or, as published, of whatever rows are at hand
embedding.py  rows of a window as vectors that know where they are
place.py      from one error per window to one score per row
"""
