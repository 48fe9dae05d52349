"""An MkDocs hook that lists guides before other pages in search results."""

from mkdocs.structure.pages import Page

BOOSTS = {"Reference": 0.5, "Research": 0.2, "Development": 0.2}


def on_page_markdown(markdown: str, page: Page, **_: object) -> None:
    """Set the search boost of a page by its section in the navigation."""
    section = page.parent.title if page.parent else None
    if section in BOOSTS:
        page.meta["search"] = {"boost": BOOSTS[section]}
