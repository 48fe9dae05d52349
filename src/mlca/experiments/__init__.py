"""The experiments that ``mlca reproduce`` runs: those of the paper, and additional ones.

Data flows through this package in one direction:

1. `scope` defines the part of the paper that a run covers: configurations (`algorithms`), available datasets
   (`splits`), and the numbers of seeds and folds. The results printed in the paper are in `paper_tables`; published
   results on streams are in `stream_tables`.
2. A study (`studies`, one module per experiment) turns the scope into `tasks`: independent fits, each with a key,
   which is a hash of its parameters and of the code. Studies that need the same fit share it. `scope` also plans an
   optional grid search.
3. `execution` runs the tasks whose results are not in the `store` yet: one after another, on several cores, or on a
   cluster. `work` runs a task in a separate process (`workers`) that is killed when a fit exceeds the time limit. A
   task is a fit of MLCA, of an algorithm in `mlca.peers`, or of one of the `rivals` from other packages. `streaming`
   runs a dataset as a stream, and `arrangements` reorders its rows or rotates its labels. Each outcome is stored at
   once, so a run can be killed at any time and resumed later; `reproduction` shows the progress.
4. The study turns the outcomes into a section: tables that compare them with the paper, figures, and a
   conclusion computed from the numbers. `report` writes them as HTML, Markdown and CSV.

`reproduction` runs these four steps.
"""
