import matplotlib as mpl

from tests.browser import browser, open_page  # noqa: F401

mpl.use("Agg")
