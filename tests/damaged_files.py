"""Helpers that damage data files reproducibly at random places."""

import random
import tracemalloc

TOKENS = [
    *(b"0", b"-1", b"1", b"99999999999999999999", b"2147483648", b"4294967295", b"1e999", b"nan", b"?", b"_"),
    *(b"{", b"}", b",", b":", b" ", b"\n", b"\r", b"'", b'"', b"\\", b"%", b"\0", b"\xff", b"\xef\xbb\xbf"),
    *(b"@data", b"@attribute ", b"@relation ", b"-C ", b"<", b">", b"&", b"<label name='", b"<!DOCTYPE a ["),
]


def mutate(raw, rng):
    """Damage a file in one to four places."""
    raw = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(raw) + 1)
        length = rng.choice((1, 1, 2, 8, 40))
        kind = rng.randrange(6)
        if kind == 0 and place < len(raw):
            raw[place] = rng.randrange(256)
        elif kind == 1:
            del raw[place : place + length]
        elif kind == 2:
            raw[place:place] = rng.choice(TOKENS)
        elif kind == 3:
            raw[place : place + length] = rng.choice(TOKENS)
        elif kind == 4:
            raw[place:place] = raw[place : place + length] * rng.choice((1, 2, 30))
        elif rng.random() < 0.3:
            del raw[place:]
    return bytes(raw)


def read_damaged(path, seed, read, n_files, growth, own):
    """Read damaged copies of a file within a memory limit; yield each with the problems found.

    `read` takes a path and returns a list of problems, or raises a ValueError; any other exception is a bug. `read` may
    use `growth` bytes of memory per byte of the file, and `own` bytes in addition.
    """
    path.write_bytes(seed)
    assert not read(path)  # reading the undamaged file first does all imports
    rng = random.Random(path.name)
    tracemalloc.start()
    try:
        for _ in range(n_files):
            damaged = mutate(seed, rng)
            path.write_bytes(damaged)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                problems = read(path)
            except ValueError as error:
                problems = [str(error)]
            except Exception as error:
                raise AssertionError(damaged) from error
            peak = tracemalloc.get_traced_memory()[1] - before
            assert peak < growth * len(damaged) + own, damaged
            yield damaged, problems
    finally:
        tracemalloc.stop()
