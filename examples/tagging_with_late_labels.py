"""Tag short texts while new tags appear.

Messages to an online shop arrive month by month, and every month brings a new tag. A hashing vectoriser turns words
into sparse rows of fixed width; the model learns rows and tags as they arrive. After each month it predicts new
messages with all tags so far, including those of the first month.
"""

import random
from collections.abc import Iterator

from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import MultiLabelBinarizer

from mlca import MLCA
from mlca.metrics import evaluate

TYPICAL = {
    "delivery": "parcel late courier tracking address doorstep shipped waiting depot driver",
    "refund": "money back return receipt charged twice amount refund credit cancel",
    "damage": "broken cracked scratched dented torn leaking damaged glass smashed bent",
    "account": "password login email locked reset profile username verify signin code",
    "gift": "birthday wrap card present surprise ribbon message gift box friend",
}
WORDS = {tag: words.split() for tag, words in TYPICAL.items()}
ORDINARY = "hello please thanks my order the since yesterday again what can you do about it help"
FILLER = ORDINARY.split()
MONTHS = [["delivery", "refund"], ["damage"], ["account"], ["gift"]]
PER_MONTH = 1000


def messages(tags: list[str], n: int, seed: int) -> Iterator[tuple[str, list[str]]]:
    """Yield texts with one or two tags each."""
    draw = random.Random(seed)
    for _ in range(n):
        own = draw.sample(tags, k=min(len(tags), draw.choice((1, 1, 2))))
        words = draw.choices(FILLER, k=6) + [word for tag in own for word in draw.sample(WORDS[tag], 4)]
        draw.shuffle(words)
        yield " ".join(words), own


def main() -> None:
    """Learn four months, and print a line for each."""
    vectoriser = HashingVectorizer(n_features=1024, alternate_sign=False, norm=None, binary=True)
    model, known = MLCA(), []
    print(f"{'month':<7}{'new tags':<19}{'rows':>6}{'nodes':>7}  exact match   of first tags   Hamming loss")
    for month, new in enumerate(MONTHS):
        known += new
        texts, tags = zip(*messages(known, PER_MONTH, seed=month), strict=True)
        model.partial_fit(vectoriser.transform(texts), tags)

        texts, tags = zip(*messages(known, 400, seed=100 + month), strict=True)
        truth = MultiLabelBinarizer(classes=model.classes_).fit_transform(tags)
        rows = vectoriser.transform(texts)
        result = evaluate(truth, model.predict_proba(rows), Y_pred=model.predict(rows))
        texts, tags = zip(*messages(MONTHS[0], 400, seed=200 + month), strict=True)
        found = model.predict_labels(vectoriser.transform(texts))
        first = sum(set(own) == labels for own, labels in zip(tags, found, strict=True)) / len(tags)
        print(
            f"{month + 1:<7}{', '.join(new):<19}{model.n_seen_:>6}{model.n_nodes_:>7}"
            f"{result.exact_match:>13.3f}{first:>16.3f}{result.hamming_loss:>15.4f}",
            flush=True,
        )
    text = "hello my present came in a torn box and the ribbon is damaged what can you do"
    print(f"\n{text!r}\n  is about {sorted(model.predict_labels(vectoriser.transform([text]))[0])}")


if __name__ == "__main__":
    main()
