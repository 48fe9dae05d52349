"""A durable, replicated HTTP service for learning and prediction, with exact replay.

Learning is deterministic and does not depend on how rows are divided into batches, so the log of rows determines the
model. The service appends rows to the log, a thread learns them in order, and replaying the log gives the same model,
bit for bit. The log is the only state that must be durable.

How a request is received:

| module | does |
|---|---|
| `server` | opens the socket, runs uvicorn, disconnects clients that stop sending or reading |
| `asgi` | assigns the request ID, finds the handler, checks host, origin and token (`tokens`), limits the time |
| `routes` | one method per route |
| `request_bodies` | receives a body within limits and parses it, in a thread (`worker_threads`) if it is large |
| `request_rows`, `table_cells` | check rows: lists of numbers, or cells of a table |
| `request_errors` | errors with row, field and remedy; checks of IDs, labels and column names |

These modules reject rows that the model would reject: the log is replayed at every start, so it must contain only valid
rows.

How a row becomes durable and is learned:

| module | does |
|---|---|
| `committing` | a thread that commits the changes of many requests together, before they are acknowledged |
| `log_changes` | the possible changes: rows to learn, rows that wait for labels, labels, rows to forget |
| `log` | the log: positions, generations, and reads of verified rows |
| `database`, `sqlite`, `postgresql` | the interface of a database, and the two databases |
| `follower` | a thread that learns the rows after the model's position, takes snapshots and rebuilds the model |
| `snapshots` | model files, each with its position in the log |
| `live_model` | the current model; rows of a table are learned by `mlca.tables.TableLearner` |
| `measures` | prequential measures and alarms; rates and latencies of the process |

How a response is produced: `predicting` predicts the rows of many requests in one call, which runs in the event loop
if it is small, else in a thread. `responses` encodes JSON, metrics and the web page, `events` streams events to
clients, `operator_log` writes the operator's log, `openapi` describes the routes. `service` connects these modules and
locks the folder (`file_locks`).

Responses that depend on the model state its position and generation. The position counts the rows of the log that the
model has processed; the generation counts the erasures that it has applied. At the same position and generation,
predictions for the same rows are equal bit for bit, on any machine and after any crash. No prediction depends on a
clock.
"""
