"""A web server on loopback that can send faulty responses."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Server:
    """A web server that handles each request with the next behaviour of a list, and repeats the last one."""

    def __init__(self):
        self.answers = []
        self.requests = []
        self.released = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests.append((self.path, self.headers.get("Range")))
                answer = server.answers[min(len(server.requests), len(server.answers)) - 1]
                answer(self)

            def log_message(self, *args):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self):
        self.released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    # Behaviours: each method returns a function that handles one request.

    def whole(self, content):
        def answer(request):
            self._head(request, 200, len(content))
            request.wfile.write(content)

        return answer

    def ranges(self, content):
        """Return a behaviour that serves the content from the requested position."""

        def answer(request):
            asked = request.headers.get("Range")
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
            if start >= len(content):
                self._head(request, 416, 0)
                return
            extra = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if asked else {}
            self._head(request, 206 if asked else 200, len(content) - start, **extra)
            request.wfile.write(content[start:])

        return answer

    def cut(self, content, length):
        """Return a behaviour that announces the full length, sends a part and closes the connection."""

        def answer(request):
            self._head(request, 200, len(content))
            request.wfile.write(content[:length])

        return answer

    def stall(self, content, length):
        """Return a behaviour that announces the full length, sends a part and stalls."""

        def answer(request):
            self._head(request, 200, len(content))
            request.wfile.write(content[:length])
            request.wfile.flush()
            self.released.wait(30)

        return answer

    def understate(self, content, length):
        """Return a behaviour that announces less than the length of the content."""

        def answer(request):
            self._head(request, 200, length)
            request.wfile.write(content)

        return answer

    def reject(self, code):
        def answer(request):
            request.send_error(code)

        return answer

    @staticmethod
    def _head(request, code, length, **extra):
        request.send_response(code)
        for name, value in {"Content-Length": str(length), **extra}.items():
            request.send_header(name, value)
        request.end_headers()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()
