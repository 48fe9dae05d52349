"""A PostgreSQL of one's own: Debian's programs, a temporary folder, a socket on loopback."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

BINARIES = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None, key=lambda path: int(path.parent.name))
MISSING = "needs PostgreSQL: apt-get install postgresql, and pip install 'mlca[postgresql]'"


class Cluster:
    """A cluster that listens on 127.0.0.1."""

    def __init__(self):
        # initdb refuses to run as root, and its user could not reach a folder below root's.
        self._folder = Path(tempfile.mkdtemp(prefix="mlca-postgresql-"))
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self._folder, self._user)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._run("initdb", "--auth=trust", "--username=mlca", "--no-sync", "--no-instructions")
        with (self._folder / "postgresql.conf").open("a") as settings:
            settings.write(
                f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\n"
                "max_connections = 100\nshared_buffers = 16MB\n"
            )
        self.start()

    def start(self):
        self._run("pg_ctl", "--wait", "--timeout=60", "--silent", f"--log={self._folder}/log", "start")

    def stop(self, mode="fast"):
        self._run("pg_ctl", "--wait", "--timeout=60", "--silent", f"--mode={mode}", "stop")

    def close(self):
        self.stop("immediate")
        shutil.rmtree(self._folder)

    def _run(self, program, *words):
        command = [str(BINARIES / program), f"--pgdata={self._folder}", *words]
        done = subprocess.run(
            command,
            user=self._user,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()

    def url(self, name):
        """Make an empty database and return its address."""
        import psycopg

        with psycopg.connect(f"postgresql://mlca@127.0.0.1:{self.port}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://mlca@127.0.0.1:{self.port}/{name}"
