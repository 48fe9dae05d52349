"""An HTTP service that learns and predicts: durable, replicated, exact.

Learning is deterministic and does not depend on chunks, so a log of rows determines the model. The design follows from
that: the service appends rows to a log, a model follows the log, and replaying the log gives the same bits. Nothing
else needs to be saved, locked, agreed upon or repaired.

How a request is received:

| module | does |
|---|---|
| `server` | opens the socket, runs uvicorn, disconnects clients that stop sending or reading |
| `asgi` | gives a request its id, finds its handler, checks host, origin and token (`tokens`), limits its time |
| `routes` | one method per route |
| `request_bodies` | receives a body within limits and parses it, large bodies in a thread of `worker_threads` |
| `request_rows`, `table_cells` | check rows: lists of numbers, or cells of a table |
| `request_errors` | errors with place and remedy; checks of IDs, labels and column names |

These steps reject rows that the model could not learn: the log is replayed at every start, so every durable row must
be learnable.

How a row becomes durable and is learned:

| module | does |
|---|---|
| `committing` | a thread that writes the changes of many requests in one commit; then they are acknowledged |
| `log_changes` | the changes: rows to learn, rows that wait for labels, labels, rows to forget |
| `log` | the log: positions, generations, and reads of verified rows |
| `database`, `sqlite`, `postgresql` | the interface of a database, and the two databases |
| `follower` | a thread that learns the rows behind the model's position, takes snapshots and rebuilds the model |
| `snapshots` | model files, each with its position in the log |
| `live_model` | the current model; rows of a table are learned by `mlca.tables.TableLearner` |
| `measures` | prequential measures and alarms; rates and latencies of the process |

How a response is produced: `predicting` predicts the rows of many requests in one call, which runs in the event loop
if it is small, else in a thread. `responses` writes JSON, metrics and the page, `events` streams to listeners,
`operator_log` writes the operator's log, `openapi` describes the routes. `service` connects these modules and locks the
folder (`file_locks`).

Every response has two numbers. The position is the number of rows of the log that the model has learned; the generation
is the number of erasures that it has applied. Responses of the same position and generation are equal bit for bit, on
any machine and after any crash. Nothing depends on clocks.
"""
