"""Parameter sweeps: many rollouts of a model with different parameters, in chunks, local or by Ray, resumable.

values        sources of parameter values
target        the swept fields
plan          a checked sweep: the parameters of each sample
chunk         samples as the worlds of batches
reduction     reductions of a rollout
identity      hashes of everything that runs
run_directory completed chunks on disk
workers       chunks as Ray tasks
run           the function `sweep`
result        the table of results
"""
