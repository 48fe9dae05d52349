"""Tag a help desk's tickets as they arrive, while new tags appear; then explain a prediction.

Tickets are generated and have text, a team, hours, a date and some empty cells. The first 300 are learned; 1,000 more
are tagged one by one before they are learned. Two tags appear during the stream without preparation. Every step is a
shell command. `make demo` runs this after the discs.
"""

import csv
import os
import random
import subprocess
import sys
from contextlib import chdir
from datetime import datetime, timedelta
from pathlib import Path
from shlex import join
from tempfile import TemporaryDirectory

SENTENCES = {
    "printer": ["the printer on floor {n} is out of toner", "paper jam in room {n} again", "prints come out striped"],
    "login": ["I cannot log in since {day}", "my account is locked", "please reset my password"],
    "network": ["no wifi in meeting room {n}", "the vpn drops every few minutes", "internet is slow since {day}"],
    "billing": [
        "invoice {n} was charged twice",
        "please refund the wrong amount",
        "the tax number on my bill is wrong",
    ],
    "phishing": ["a strange mail asks for my card", "link in mail {n} looks fake", "somebody pretends to be the bank"],
}
FILLERS = ["good morning", "thanks in advance", "it worked last week", "best regards", "my colleagues see it too"]
TEAMS = {"printer": "office", "login": "accounts", "network": "sites", "billing": "accounts", "phishing": "security"}
APPEARS = {"billing": 500, "phishing": 850}  # the first ticket that may have this tag; other tags occur from the start
COLUMNS = ["opened", "team", "hours", "text", "tags"]


def tickets(n: int, seed: int = 0) -> list[list[object]]:
    """Generate tickets of one or two topics, with filler, wrong teams and missing values."""
    draw, opened, rows = random.Random(seed), datetime(2026, 1, 5, 8), []
    for number in range(n):
        opened += timedelta(minutes=draw.randrange(60))
        known = [topic for topic in SENTENCES if APPEARS.get(topic, 0) <= number]
        topics = draw.sample(known, draw.choice((1, 1, 1, 2)))
        said = [draw.choice(SENTENCES[topic]) for topic in topics] + draw.sample(FILLERS, draw.randrange(3))
        draw.shuffle(said)
        text = ", ".join(said).format(n=draw.randrange(1, 400), day=f"{opened:%A}")
        team = draw.choice([TEAMS[topics[0]], *TEAMS.values()])
        hours = round(draw.gammavariate(2, 6 if "network" in topics else 2), 1)
        cells = [f"{opened:%Y-%m-%d %H:%M}", team, hours, text]
        rows.append([cell if draw.random() > 0.04 else "" for cell in cells] + ["|".join(sorted(topics))])
    return rows


def write(path: str, rows: list[list[object]]) -> None:
    """Write a CSV file."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *rows])


def run(*words: str) -> None:
    """Print a command and run it."""
    print(f"\n$ mlca {join(words)}", flush=True)
    subprocess.run([sys.executable, "-m", "mlca", *words], check=True)


def main() -> None:
    """Train on the first tickets, process the others as a stream, explain one, and draw a picture."""
    picture = Path("demo").absolute() / "tickets_stream.png"
    picture.parent.mkdir(exist_ok=True)
    os.environ.setdefault("MPLBACKEND", "agg")
    with TemporaryDirectory() as folder, chdir(folder):
        rows = tickets(1300)
        write("first.csv", rows[:300])
        write("stream.csv", rows[300:])
        write("new.csv", [["2026-03-02 09:10", "", 1.5, "a strange mail from the bank asks for my password", ""]])
        run("train", "first.csv", "--labels", "tags", "--out", "desk.mlca")
        run("evaluate", "desk.mlca", "stream.csv", "--prequential", "--curve-window", "250", "--picture", str(picture))
        run("update", "desk.mlca", "stream.csv")
        run("explain", "desk.mlca", "new.csv", "--row", "1")
    print("\nHow well tickets were tagged before they were learned: demo/tickets_stream.png")


if __name__ == "__main__":
    main()
