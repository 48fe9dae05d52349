"""A hook of MkDocs: in search results, guides come before reference, research and development pages."""

from mkdocs.structure.pages import Page

BOOSTS = {"Reference": 0.5, "Research": 0.2, "Development": 0.2}


def on_page_markdown(markdown: str, page: Page, **_: object) -> None:
    """Set the search boost of a page by its section of the navigation."""
    section = page.parent.title if page.parent else None
    if section in BOOSTS:
        page.meta["search"] = {"boost": BOOSTS[section]}
