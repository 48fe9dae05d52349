"""Speed, relative to the limits of the machine.

`probes` measures the limit of the machine: exponentials per second of the bare summed kernel, in float64 and in
float32, on one thread with data in cache. `workloads` lists what is measured: learning and prediction on the
shapes that matter, each as a function that does the work; `rivals` does the same work in plain NumPy, scikit-learn and
River. `data` brings the datasets, real ones where they are at hand, else generated ones of the same shape.
`running` times one workload after the other in this process (by `clock`; the six algorithms of the paper are the matter
of `peers`), and `results` prints one table of rows a second,
attribute pairs a second and the ratio to the probe, so that figures from different machines can be compared.

`serve` is separate: it measures the service through HTTP, beside the same learner in this process.

Nothing here asserts anything: `mlca bench` reports, and tests do not use it.
"""
