"""The page in a real Chromium: it updates while a stream is learned, survives a restart, and runs no foreign code."""

import pytest

from mlca.client import Client
from tests.browser import CONTRASTS
from tests.serve.log_streams import make_rows

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright to drive Chromium").expect

EVIL = '</script><img src=x onerror="window.ran=1"><b>'


def stream(server, start, n=60):
    """Send rows as a stream: predicted first, labelled afterwards."""
    rows = make_rows(n, start)
    for row in rows:
        heat, wind, rain = row["x"]
        row["x"] = {"heat": heat, "wind": wind, "rain": "wet" if rain > 0 else "dry"}
    with Client(server.url) as client:
        client.predict([{"id": row["id"], "x": row["x"]} for row in rows], keep=True)
        position = client.labels(rows)["position"]
        client.predict([{"x": rows[0]["x"]}], min_position=position)
    return position


@pytest.fixture(scope="module")
def server(fork_server, tmp_path_factory):
    from tests.serve.service_process import Server

    server = Server(fork_server, tmp_path_factory.mktemp("page") / "data").start()
    stream(server, 0)
    position = stream(server, 60)
    rows = [{"id": EVIL, "x": {"heat": 0, "wind": 0, "rain": EVIL}, "labels": [EVIL, "x" * 150]}]
    server.learn(rows)
    server.post("/v1/predict", {"rows": [{"x": {"heat": 0}}], "min_position": position + 1})
    yield server
    server.end()


def test_page_is_updated_while_a_stream_is_learned_and_after_a_restart(open_page, serve):
    server = serve()
    server._words = ("--port", server.port)
    page = open_page(server)
    expect(page.locator("#status")).to_have_text("live")
    expect(page.locator("#exact-note")).to_have_text("no labels yet")
    stream(server, 0)
    expect(page.locator("#position")).to_have_text("60", timeout=15_000)
    stream(server, 60)
    expect(page.locator("#position")).to_have_text("120", timeout=15_000)
    expect(page.locator("#exact")).not_to_have_text("–")
    expect(page.locator("#last tbody tr")).to_have_count(30)
    expect(page.locator("#labels tbody tr")).to_have_count(6)
    curve = page.locator("#quality path.line").first.get_attribute("d")
    assert page.errors == []
    server.kill()
    expect(page.locator("#status")).to_have_text("connecting to the service", timeout=15_000)
    server.start()
    expect(page.locator("#status")).to_have_text("live", timeout=15_000)
    stream(server, 120)
    expect(page.locator("#position")).to_have_text("180", timeout=15_000)
    assert page.locator("#quality path.line").first.get_attribute("d") != curve
    # The console has no messages except those about the unreachable service.
    assert all("ERR_" in error for error in page.errors)


def test_page_loads_nothing_foreign(open_page, server):
    page = open_page(server)
    expect(page.locator("#last tbody tr").first).to_contain_text(EVIL, timeout=15_000)
    expect(page.locator("#labels")).to_contain_text(EVIL)
    expect(page.locator("#alarms li").first).to_contain_text("row 121: new label 'x")
    expect(page.locator("#alarms")).to_contain_text(EVIL)
    expect(page.locator("#quality .mark")).to_have_count(2)  # late2 was learned just before
    page.locator("#last button").first.click()
    expect(page.locator("#explanation table tbody tr").first).to_be_visible()
    assert page.evaluate("window.ran") is None
    assert page.errors == []
    assert all(url.startswith((server.url, "data:")) for url in page.requests)
    # Even if markup were inserted, the content security policy would block it.
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 2'}))")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran=3\">')")
    page.wait_for_timeout(100)
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in error or "Content-Security-Policy" in error for error in page.errors)


def test_row_is_predicted_and_explained_by_keyboard(open_page, server):
    page = open_page(server)
    expect(page.locator("#x-hint")).to_have_text(
        "3 columns: heat (numeric), rain (categorical), wind (numeric)", timeout=15_000
    )
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("#x")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type('{"heat": 2, "wind": -2, "rain": "dry"}')
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#answer")).to_contain_text("Predicted")
    expect(page.locator("#answer .bars .number").first).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.locator("#explanation")).to_be_visible()
    expect(page.locator("#explanation tbody tr")).not_to_have_count(0)
    expect(page.locator("#explanation tr", has=page.get_by_role("rowheader", name="rain"))).to_contain_text("dry")
    page.keyboard.press("Escape")
    expect(page.locator("#explanation")).not_to_be_visible()
    expect(page.locator("#why")).to_be_focused()
    page.locator("#x").fill('{"heat": [2]}')
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#answer .refused")).to_have_text(
        "x['heat'] is a list; send a number, a string, true, false or null"
    )
    page.locator("#x").fill("[1,")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#answer .refused")).to_contain_text("Not valid JSON")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_contrast_is_sufficient(open_page, server, scheme):
    page = open_page(server, color_scheme=scheme)
    expect(page.locator("#last tbody tr").first).to_be_visible(timeout=15_000)
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#answer")).to_contain_text("Predicted")
    for explained in (False, True):
        if explained:
            page.locator("#why").click()
            expect(page.locator("#explanation tbody tr").first).to_be_visible()
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) > 60
        assert min(contrasts)[0] > 4.5, min(contrasts)


@pytest.mark.parametrize("width", [340, 390, 768, 1280, 1920])
def test_the_page_never_scrolls_sideways(open_page, server, width):
    page = open_page(server, width)
    expect(page.locator("#last tbody tr").first).to_be_visible(timeout=15_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Tables in the page do not scroll either, however long IDs and labels are, so explanations stay visible.
    sideways = "[...document.querySelectorAll('.box')].map((box) => box.scrollWidth - box.clientWidth)"
    assert set(page.evaluate(sideways)) == {0}
    tiles = [tile.bounding_box() for tile in page.locator(".tiles article").all()]
    assert len({round(tile["x"]) for tile in tiles}) * len({tile["y"] for tile in tiles}) == 8
    for svg in page.locator(".charts svg").all():
        box = svg.bounding_box()
        assert 200 < box["width"] < width
        assert svg.locator("text").count() >= 5


def test_ids_are_unique_and_everything_has_a_name(open_page, server):
    page = open_page(server)
    expect(page.locator("#last tbody tr").first).to_be_visible(timeout=15_000)
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((element) => element.id)")
    assert len(set(ids)) == len(ids)
    for name in ("The last rows", "Labels"):
        assert page.get_by_role("region", name=name, exact=True).count() == 1
    assert page.get_by_role("img", name="exact match").count() == 1
    assert page.get_by_role("textbox", name="Its values").count() == 1


def test_token_is_requested_and_used(open_page, serve, tmp_path, capsys):
    from mlca.serve.tokens import add_token

    secret = add_token(tmp_path / "tokens.json", "reader", ["predict"])
    server = serve("--tokens", tmp_path / "tokens.json")
    page = open_page(server)
    expect(page.locator("#token-form")).to_be_visible()
    page.get_by_label("This service requires a token").fill("wrong")
    page.get_by_role("button", name="Use it").click()
    expect(page.locator("#status")).to_have_text("needs a token")
    page.get_by_label("This service requires a token").fill(secret)
    page.get_by_role("button", name="Use it").click()
    expect(page.locator("#status")).to_have_text("live", timeout=15_000)
    expect(page.locator("#token-form")).not_to_be_visible()
