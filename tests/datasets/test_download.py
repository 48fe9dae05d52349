"""Downloads from a real server that behaves well or badly."""

import hashlib
import multiprocessing
import socket

import pytest

from mlca.datasets import DownloadError
from mlca.datasets.download import download

CONTENT = bytes(range(256)) * 1000
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
SHORT = 0.2


@pytest.fixture
def target(tmp_path):
    return tmp_path / "deep" / "file.zip"


def files(target):
    return sorted(path.name for path in target.parent.iterdir())


def test_whole_file_is_downloaded_and_verified(server, target):
    server.answers = [server.whole(CONTENT)]
    assert download(server.url + "/file.zip", target, checksum=SHA256, timeout=5) == target
    assert target.read_bytes() == CONTENT
    assert files(target) == ["file.zip"]


def test_existing_file_is_replaced(server, target):
    target.parent.mkdir()
    target.write_bytes(b"old")
    server.answers = [server.whole(CONTENT)]
    download(server.url, target, timeout=5)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("break_off", ["cut", "stall"])
def test_download_resumes_after_a_broken_connection(server, target, break_off):
    server.answers = [getattr(server, break_off)(CONTENT, 100_000), server.ranges(CONTENT)]
    download(server.url, target, checksum=SHA256, timeout=SHORT)
    assert target.read_bytes() == CONTENT
    assert [asked for _, asked in server.requests] == [None, "bytes=100000-"]


def test_later_call_resumes_a_failed_download(server, target):
    server.answers = [server.cut(CONTENT, 50_000), server.reject(500), server.ranges(CONTENT)]
    with pytest.raises(DownloadError, match=r"the server responded with 500"):
        download(server.url, target, timeout=SHORT)
    assert not target.exists()
    download(server.url, target, checksum=SHA256, timeout=SHORT)
    assert target.read_bytes() == CONTENT
    assert server.requests[-1] == ("/", "bytes=50000-")
    assert files(target) == ["file.zip"]


def test_download_restarts_without_range_support(server, target):
    server.answers = [server.cut(CONTENT, 100_000), server.whole(CONTENT)]
    download(server.url, target, checksum=SHA256, timeout=SHORT)
    assert target.read_bytes() == CONTENT


def test_download_restarts_if_the_partial_file_is_too_long(server, target):
    server.answers = [server.cut(CONTENT * 2, 300_000), server.ranges(CONTENT)]
    download(server.url, target, checksum=SHA256, timeout=SHORT)
    assert target.read_bytes() == CONTENT
    assert [asked for _, asked in server.requests] == [None, "bytes=300000-", None]


def test_stalled_server_raises_timeout(server, target):
    server.answers = [server.stall(CONTENT, 10)]
    with pytest.raises(DownloadError, match=rf"{server.url}: the server stopped sending data \(3 attempts\)"):
        download(server.url, target, timeout=0.05)
    assert not target.exists()


def test_server_that_always_breaks_off_fails(server, target):
    server.answers = [server.cut(CONTENT, 1000)]
    with pytest.raises(DownloadError, match="255000 more expected"):
        download(server.url, target, timeout=SHORT)
    assert not target.exists()


def test_too_small_content_length_fails_the_checksum(server, target):
    server.answers = [server.understate(CONTENT, 1000)]
    with pytest.raises(DownloadError, match=rf"the sha256 checksum of the download is \w+; expected {SHA256[7:]}"):
        download(server.url, target, checksum=SHA256, timeout=SHORT)
    assert files(target) == []  # no part of a wrong file is kept for resuming


@pytest.mark.parametrize("code", [404, 500])
def test_server_errors_are_reported(server, target, code):
    server.answers = [server.reject(code)]
    with pytest.raises(DownloadError, match=rf"{server.url}/x: the server responded with {code}"):
        download(server.url + "/x", target, timeout=SHORT)
    assert len(server.requests) == 1
    assert not target.exists()


def test_unreachable_server_is_reported(target):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    with pytest.raises(DownloadError, match="refused"):
        download(url, target, timeout=SHORT)


def test_two_processes_download_the_same_file_without_conflict(server, target):
    server.answers = [server.ranges(CONTENT)]
    context = multiprocessing.get_context("spawn")  # no fork, because the server runs in a thread
    calls = [
        context.Process(target=download, args=(server.url, target), kwargs={"checksum": SHA256, "timeout": 5})
        for _ in range(2)
    ]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert [call.exitcode for call in calls] == [0] * 2
    assert target.read_bytes() == CONTENT
    assert files(target) == ["file.zip"]
