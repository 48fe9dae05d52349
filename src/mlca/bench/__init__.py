"""Speed benchmarks, with a measured limit of the machine for comparison.

`probes` measures the limit of the machine: exponentials per second on one thread with data in cache. `workloads`
contains the measured work: learning and prediction on data of typical shapes, one function each. `baselines` does the
same work in plain NumPy, scikit-learn and River. `samples` loads the datasets, or generates data of the same shapes.
`benchmarks` runs the workloads one after another in this process. `results` prints rows per second, feature pairs per
second and the ratio to the probe, so that figures from different machines can be compared.

`serving` is separate: it measures the service through HTTP, and the same learner in this process for comparison.

`mlca bench` only reports results; tests do not depend on them.
"""
