"""The systemd unit and the Containerfile in docs, tested as far as possible without systemd and a registry.

Their commands run unchanged in a copy of this machine's files with a separate network: as the named user, without
capabilities, on port 8000. The build from Debian and PyPI is not tested (`make check-wheel` installs the package in an
empty environment).
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from mlca.cli import build_parser
from mlca.serve.tokens import add_token
from tests.docs.pages import ROOT

UNIT, CONTAINER = ROOT / "docs" / "mlca-serve.service", ROOT / "docs" / "Containerfile"


def commands():
    starts = re.findall(r"^(?:# )?ExecStart=\S+/mlca (.*)$", UNIT.read_text(), re.MULTILINE)
    entry = re.search(r'^ENTRYPOINT \["\S+/mlca", (.*)\]$', CONTAINER.read_text(), re.MULTILINE)[1]
    return [*starts, entry.replace(",", "")]


@pytest.mark.parametrize("words", commands())
def test_documented_commands_match_this_version(words):
    args = build_parser().parse_args(shlex.split(words))
    assert args.command == "serve"
    assert args.data
    assert args.host == "127.0.0.1" or args.tokens


def test_systemd_accepts_the_unit(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd-analyze")
    program = tmp_path / "mlca"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/mlca/bin/mlca", str(program)))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    about_it = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert about_it == []


# A disk in memory over this machine's files, and a private loopback. The following commands run in it.
WORLD = """
set -e
umask 022
mkdir world && mount -t tmpfs world world && cd world && mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
mount --rbind /dev root/dev && mount -t proc proc root/proc
%(python)s -c 'import fcntl, socket, struct
with socket.socket() as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh22x", b"lo", 1 | 64))'  # SIOCSIFFLAGS: up, running
rm -rf root/opt/mlca && ln -s %(prefix)s root/opt/mlca
touch ../made
exec chroot root sh -c "$0"
"""
# Starts the service, waits until it is healthy, sends rows, stops it, and reports how it ended.
TRY = """
set -e
setpriv --reuid=%(user)s --regid=%(user)s --clear-groups test -x /opt/mlca/bin/mlca || exit 77  # for its owner only
%(prepare)s
setpriv --reuid=%(user)s --regid=%(user)s --clear-groups --bounding-set=-all --no-new-privs %(start)s >/run/told &
service=$!
turn=0
until grep -q http: /run/told && %(health)s 2>/run/unhealthy; do
  turn=$((turn + 1)); test $turn -lt 300 || { cat /run/unhealthy >&2; exit 1; }; sleep 0.2
done
/opt/mlca/bin/python -c 'from mlca.client import Client
with Client("http://127.0.0.1:8000", "%(token)s" or None) as client:
    print(client.learn([{"id": "a", "x": [1, 2], "labels": ["storm"]}])["position"])'
kill -%(signal)s $service
wait $service
stat --format '%%U %%a' %(data)s
"""
HEALTH = "/opt/mlca/bin/python -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:8000/health/ready\")'"


def try_out(folder, **words):
    """Return the output of a command that serves in an isolated environment."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("setpriv"):
        pytest.skip("needs root, unshare and setpriv")
    world = WORLD % {"python": sys.executable, "prefix": sys.prefix}
    unshare = [
        "unshare",
        "--fork",
        "--pid",
        "--kill-child",
        "--mount",
        "--net",
        "--propagation",
        "private",
        "sh",
        "-c",
        world,
    ]
    options = {"cwd": folder, "capture_output": True, "text": True, "timeout": 120, "check": False}
    done = subprocess.run([*unshare, TRY % ({"prepare": "", "token": ""} | words)], **options)
    if not (folder / "made").exists() or done.returncode == 77:
        pytest.skip(f"needs the right to mount, and a checkout that others may read: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    troubles = [
        line for line in done.stderr.splitlines() if line.startswith("{") and json.loads(line)["event"] == "trouble"
    ]
    assert troubles == []
    return done.stdout.split()


def test_the_unit_serves_and_stops(tmp_path):
    text = UNIT.read_text()
    start = re.search("^ExecStart=(.*)$", text, re.MULTILINE)[1].replace("%S", "/var/lib")
    assert "StateDirectory=mlca\nStateDirectoryMode=0700" in text
    # DynamicUser and StateDirectory, PrivateTmp, ProtectSystem=strict, UMask:
    prepare = """mkdir /var/lib/mlca && mount -t tmpfs -o uid=65534,mode=700 state /var/lib/mlca
for place in /tmp /run; do mount -t tmpfs private $place; done
mount -o remount,ro /
umask 077"""
    signal = re.search("^KillSignal=SIG(.*)$", text, re.MULTILINE)[1]
    found = try_out(
        tmp_path,
        user=65534,
        prepare=prepare,
        start=start,
        health=HEALTH,
        signal=signal,
        data="/var/lib/mlca/log.sqlite",
    )
    assert found == ["1", "nobody", "600"]


def test_the_container_serves_and_stops(tmp_path):
    """Tests the last stage of the Containerfile: user, folder, entry point, health check and stop signal."""
    text = CONTAINER.read_text().replace("\\\n", "")
    stage = text.rpartition("\nFROM ")[2]
    prepare = re.search("^RUN (.*)$", stage, re.MULTILINE)[1]
    entry, health = (
        shlex.join(json.loads(re.search(rf"^{word}.*?(\[.*)$", stage, re.MULTILINE)[1]))
        for word in ("ENTRYPOINT", "HEALTHCHECK")
    )
    user = re.search(r"--uid (\d+)", prepare)[1]
    token = add_token(tmp_path / "tokens.json", "all", ["predict", "learn"])
    # As the file's first comment says: the user in the container must be able to read the package.
    assert f"chown {user} tokens.json" in text
    prepare += f"; cp {tmp_path}/tokens.json /run/; chown {user} /run/tokens.json"
    found = try_out(
        tmp_path,
        user=user,
        prepare=prepare,
        start=entry,
        health=health,
        token=token,
        signal=re.search("^STOPSIGNAL SIG(.*)$", stage, re.MULTILINE)[1],
        data="/data/log.sqlite",
    )
    assert found == ["1", re.search("^USER (.*)$", stage, re.MULTILINE)[1], "600"]
