"""Train a model from a CSV file and continue training, using only the command line.

A help desk tags its tickets. The script trains a model on the tickets of January and continues training in February,
when a new tag appears. It evaluates the model on March, tags new tickets and explains a prediction. Every step is a
shell command; the script prints each command before running it.
"""

import csv
import random
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

TEAMS = {"shop": ("billing", 3.0), "app": ("login", 1.5), "api": ("outage", 0.4)}
WORDS = {
    "billing": ["the invoice was charged twice", "please refund the wrong amount"],
    "login": ["I cannot log in any more", "my password has expired"],
    "outage": ["every call times out", "the service answers with an error"],
    "attack": ["somebody tries passwords from abroad", "hundreds of failed logins tonight"],
    "urgent": ["customers are waiting", "please hurry"],
}


def write_tickets(path: Path, n: int, seed: int, *, attacks: bool) -> None:
    """Write generated tickets: numbers, a category, free text, and tags separated by |."""
    draw = random.Random(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["ticket", "hours_open", "messages", "failed_logins", "product", "text", "tags"])
        for number in range(n):
            product = draw.choice(list(TEAMS))
            tag, pace = TEAMS[product]
            tags, hours, failed = {tag}, draw.gammavariate(2, pace), draw.randrange(3)
            messages = 1 + int(hours * draw.uniform(0.5, 1.5))
            if hours < 1:
                tags.add("urgent")
            if attacks and draw.random() < 0.15:
                tags.add("attack")
                failed += draw.randrange(10, 14)
            text = "" if draw.random() < 0.1 else ", ".join(draw.choice(WORDS[tag]) for tag in sorted(tags))
            row = [f"T{seed}-{number:05}", f"{hours:.2f}", messages, failed, product, text, "|".join(sorted(tags))]
            table.writerow(row)


def run(*words: str) -> None:
    """Print a command and run it."""
    print(f"\n$ mlca {shlex.join(words)}", flush=True)
    subprocess.run([sys.executable, "-m", "mlca", *words], check=True)


def main() -> None:
    """Write three months of tickets and run all steps."""
    with TemporaryDirectory() as folder:
        january, february, march, new = (Path(folder, f"{month}.csv") for month in ("jan", "feb", "mar", "new"))
        write_tickets(january, 1000, 1, attacks=False)
        write_tickets(february, 1000, 2, attacks=True)
        write_tickets(march, 300, 3, attacks=True)
        write_tickets(new, 3, 4, attacks=True)
        model = str(Path(folder, "tickets.mlca"))

        # The text is hashed by words, and numbers beside text are scaled. The ticket number is an ID, so it is not
        # learned.
        choices = ["--id", "ticket", "--holdout", ".1"]
        run("train", str(january), "--labels", "tags", "--out", model, *choices)
        run("update", model, str(february), "--backup")
        run("evaluate", model, str(march))
        run("inspect", model)
        run("predict", model, str(new), "--out", "-")
        run("explain", model, "--row", "1", str(new))


if __name__ == "__main__":
    main()
