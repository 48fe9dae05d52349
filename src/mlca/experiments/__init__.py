"""The experiments of the paper and further ones, repeated by ``mlca reproduce``.

Data flow through this package in one direction:

1. `scope` defines the part of the paper that a run covers: configurations (`algorithms`), available datasets
   (`splits`), and the numbers of seeds and folds. The paper's own figures are in `paper_tables`, published results on
   streams in `stream_tables`.
2. A study (`studies`, one module per experiment) turns the scope into `tasks`: independent fits, each with a key
   that holds its parameters and a fingerprint of the code. Studies that need the same fit share it. `scope` also plans
   an optional grid search.
3. `execution` runs the tasks that the `store` does not have yet: one after another, on several cores, or on a
   cluster. `work` runs a task in a separate process (`workers`) that is killed when a fit exceeds the time limit. A
   task is a fit of one of our algorithms, of a peer, or of one of the `rivals` from other packages. `streaming` runs a
   dataset as a stream, and `arrangements` set its order and concept changes. Each outcome is stored at once, so a run
   may be killed at any time and resumed later; `reproduction` shows the progress.
4. The study turns the outcomes into a section: tables that compare with the paper, figures, and a conclusion
   computed from the numbers. `report` writes them as HTML, Markdown and CSV.

`reproduction` runs these four steps.
"""
