"""A service that keeps learning: durable, replicated, exact.

Learning is deterministic and does not depend on chunks, so a log of rows is the model. That one sentence is the design:
the service appends rows to a log, a model follows the log, and whoever replays the log has the same bits. Nothing else
needs to be saved, locked, agreed upon or repaired.

A row on its way. `running` opens the socket and gives up who neither sends nor reads; `gate` gives the request an id,
finds its handler, asks for its token (`tokens`) and limits its time; `http` has one method a route. `bodies` limits
what is sent, and reads and writes what is large in a thread, so that nobody waits for it. `rows` reads the
row's `x`, a list of numbers, or with `tablerows` the cells of a table, and refuses whatever could trip a later stage:
the log is replayed for ever, so nothing may become durable that cannot be learned. What is refused is told with its
place and a remedy (`refusals`), texts of a request as `naming` lets them be shown. The request goes to the thread of
`committing`, which writes what many clients sent, their `changes`, in one commit of the `log`; when that is on the disk
the client hears its position. `sqlite` and `postgresql` are the two places where a log can live; what it asks of them
stands in `database`.

The thread of `learning` follows the log: reads the rows behind the model's position, learns them (those of a table by a
recipe: `tablelearning`), takes `snapshots` now and then, and rebuilds the model when rows were forgotten. `live` is the
model in use; predictions come to it through `predicting`, which judges rows of many requests in one call, small ones at
once and others in a thread (`gathering` is what its thread and that of `committing` have in common). `measures` counts:
prequential ones belong to the log and travel with the model, rates and latencies to the process, and so do `alarms`.

On the way out, `explaining` makes JSON of an explanation, `events` streams to whoever listens, `page` is what a browser
shows of it, `prometheus` what Prometheus collects, `diary` what the operator reads, written by a thread of its own;
`openapi` is the contract in a form that programs read. `service` holds all of it together, and by
`folders` the folder for itself.

Two numbers stand in every answer. The position says how much of the log the model knows; the generation, how many
forgettings it has followed. Answers of the same position and generation are equal bit for bit, on whatever machine,
after whatever crash. Clocks decide nothing.
"""
