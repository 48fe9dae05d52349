"""All compiled code of the learner, and nothing else.

Bottom up: `fixedpoint` has the kernel function and sums of it that no order of adding can change; `screen`
excludes nodes in float32; `overlaps` counts what binary rows share; `nearest` keeps the short lists; `dense` and
`sparse` find the nearest nodes of either kind, `stores` gives both the same verbs; `bandwidth` reads the window,
`binary_window` counts in it, `groups` sorts attributes, `ragged` holds rows that grow, `votes` turns neighbours into
labels. On top of them stand the loops: `learn`, `foresee` for several threads, `predict` and `merge`.

Kernels decide nothing that a user could choose: settings come in as numbers. They allocate working space
but never enlarge the model; `learn` returns when its arrays are full.
"""
