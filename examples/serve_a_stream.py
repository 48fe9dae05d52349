"""Serve a model that learns a generated stream, and watch it on its page. `make serve` runs this.

The stream is weather that changes through the year; sometimes a new label appears. Every row is predicted before its
labels are sent, so the page shows the accuracy. After a restart the stream continues where it stopped.
"""

import argparse
import itertools
import math
import random
import subprocess
import sys
import time
from pathlib import Path

from mlca.client import Client, ServiceError


def weather(number: int) -> tuple[dict[str, float], list[str]]:
    """Return the measurements and labels of a moment, which depend only on its number."""
    draw = random.Random(number)
    season = math.sin(number / 3000)
    heat = 12 + 14 * season + draw.gauss(0, 4)
    wind = abs(draw.gauss(14, 9))
    rain = max(0.0, draw.gauss(1 - season, 2.5))
    labels = {
        "storm": wind > 24,
        "wet": rain > 1.5,
        "frost": heat < 2,
        "warm": heat > 18,
        "snow": number > 800 and heat < 3 and rain > 0.5,
        "heat wave": number > 2000 and heat > 26,
        "drought": number > 4000 and rain == 0 and heat > 20,
    }
    x = {"heat": round(heat, 2), "wind": round(wind, 2), "rain": round(rain, 2), "season": round(season, 3)}
    return x, [name for name, holds in labels.items() if holds]


def main() -> None:
    """Start the service and send the stream to it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", default="demo/service", help="where log and snapshots go")
    options.add_argument("--port", default="0", help="0 takes a free one")
    options.add_argument("--seconds", type=float, default=3, help="inf runs forever")
    args = options.parse_args()
    Path(args.data).mkdir(parents=True, exist_ok=True)
    with (Path(args.data) / "service.log").open("a") as diary:
        command = [sys.executable, "-m", "mlca", "serve", "--data", args.data, "--port", args.port]
        service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=diary, text=True)
    try:
        line = service.stdout.readline().strip() if service.stdout else ""
        if not line:
            sys.exit(f"the service did not start; see {args.data}/service.log")
        print(line, "(Ctrl-C stops it)", flush=True)
        stream(line.removeprefix("mlca serve: "), time.monotonic() + args.seconds)
    except (KeyboardInterrupt, ServiceError) as end:
        print(f"stopping {end}")
    finally:
        service.terminate()
        service.wait(60)


def stream(url: str, until: float) -> None:
    """Send rows in batches of twenty, starting at the end of the log."""
    with Client(url) as client:
        for start in itertools.count(client.model()["log_position"], 20):
            moments = [(f"moment-{number}", *weather(number)) for number in range(start, start + 20)]
            client.predict([{"id": id, "x": x} for id, x, _ in moments], keep=True)
            position = client.labels([{"id": id, "labels": labels} for id, _, labels in moments])["position"]
            if time.monotonic() > until:
                print(f"{position:,} rows are in the log")
                return
            time.sleep(0.05)


if __name__ == "__main__":
    main()
