"""Helpers that unpack model files, and pack modified files as an attacker could."""

import io
import json
import zipfile

import numpy as np

from mlca.storage import HEADER, checksum


def members_of(path):
    """Return the bytes of every member."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def unpack(path):
    """Return the header, and the arrays by name."""
    members = members_of(path)
    header = json.loads(members.pop(HEADER))
    return header, {name.removesuffix(".npy"): np.load(io.BytesIO(raw)) for name, raw in members.items()}


def npy(array, **options):
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def signed(header, arrays):
    """Return the header with a recomputed checksum, as a careful attacker would write it."""
    if header.get("version") == 1:
        return header
    return header | {"checksum": checksum(header, arrays)}


def write_members(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def pack(path, header, arrays):
    """Write a file with valid CRCs and a valid checksum."""
    members = [(HEADER, json.dumps(signed(header, arrays)))]
    return write_members(path, members + [(f"{name}.npy", npy(array)) for name, array in arrays.items()])
