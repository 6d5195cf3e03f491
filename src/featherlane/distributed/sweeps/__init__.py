"""Sweeps: many rollouts of a model with other numbers, in chunks, here or by Ray, with a folder that goes on.

values        where samples' numbers come from
target        the fields that they are for
plan          a sweep, checked: what each sample is
chunk         some samples as the worlds of batches
reduction     what is kept of a rollout
identity      hashes of all that runs
run_directory what is done, on disk
workers       chunks by Ray
run           the call
result        its table
"""
