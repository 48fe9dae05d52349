"""A PostgreSQL cluster for tests: Debian's programs, a temporary folder, a socket on loopback."""

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

BINARIES = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None, key=lambda path: int(path.parent.name))
MISSING = "needs PostgreSQL: apt-get install postgresql, and pip install 'mlca[postgresql]'"


class Cluster:
    """A cluster that listens on 127.0.0.1."""

    def __init__(self):
        # initdb rejects root, and the user postgres could not access a folder of root.
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

    @contextmanager
    def hanging(self):
        """Suspend all processes, so that connections get no response; resume them at the end."""
        leader = psutil.Process(int((self._folder / "postmaster.pid").read_text().split()[0]))
        stopped = [leader]
        leader.suspend()  # suspended first, so that it starts no new processes
        try:
            for process in leader.children():
                process.suspend()
                stopped.append(process)
            yield
        finally:
            for process in reversed(stopped):
                process.resume()

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


class Cable:
    """A proxy to the database that can drop a connection right after it forwarded a commit."""

    def __init__(self, port):
        self._database = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut_at_commit = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self._database))
                for ends in ((near, far, True), (far, near, False)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, source, sink, to_database):
        writes = False
        with suppress(OSError):
            while content := source.recv(65536):
                writes = writes or b"READ COMMITTED" in content  # only writing transactions begin with this
                cut = self.cut_at_commit and to_database and writes and b"COMMIT\0" in content
                if cut:
                    source.shutdown(socket.SHUT_WR)  # the response is dropped
                sink.sendall(content)
                if cut:
                    self.cut_at_commit = False
                    return
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
