"""A process that has done all imports and forks services, to save start-up time.

The process reads one JSON order per line. The order
{"words": [...], "out": file, "err": file, "limits": {resource: bytes}, "before": Python}
starts `mlca WORDS` after running the code of "before", and prints the process ID of the service.
{"wait": pid, "seconds": s} prints the exit code of a service, or null while it runs.
"""

import json
import os
import resource
import sys
import time


def main():
    import numpy as np

    from mlca.classifier import MLCA

    model = MLCA().fit(np.random.default_rng(0).normal(size=(60, 2)), [("a",)] * 60)
    model.predict_proba([[0.0, 0.0]])
    model.explain([0.0, 0.0])

    import mlca.serve.server
    import mlca.storage  # noqa: F401

    ends = {}
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        answer = start(order) if "words" in order else wait(order["wait"], order["seconds"], ends)
        print(json.dumps(answer), flush=True)


def start(order):
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.setsid()
        for number, (path, flags) in enumerate(
            [
                (os.devnull, os.O_RDONLY),
                (order["out"], os.O_WRONLY | os.O_CREAT),
                (order["err"], os.O_WRONLY | os.O_CREAT),
            ]
        ):
            os.dup2(os.open(path, flags | (os.O_APPEND if number else 0), 0o600), number)
        for name, size in order.get("limits", {}).items():
            resource.setrlimit(getattr(resource, name), (size, size))
        os.environ.update(order.get("environment", {}))
        exec(order.get("before", ""), {})
        from mlca.cli import main as command

        code = command(order["words"])
        sys.stdout.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def wait(pid, seconds, ends):
    deadline = time.monotonic() + seconds
    while pid not in ends:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            ends[pid] = os.waitstatus_to_exitcode(status)
        elif time.monotonic() > deadline:
            return None
        else:
            time.sleep(0.01)
    return ends[pid]


if __name__ == "__main__":
    main()
