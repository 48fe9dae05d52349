"""Chromium for tests, and what is asked of a page in it."""

import shutil

CHROMIUM = shutil.which("chromium")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]

# The ratio of WCAG 2 between each text and what lies behind it.
CONTRASTS = """() => {
  const parse = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const luminance = (colour) => parse(colour).slice(0, 3)
    .map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (parse(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = [...document.body.querySelectorAll("*:not(svg, svg *, script)")]
    .filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  return texts.map((element) => {
    const [a, b] = [getComputedStyle(element).color, background(element)].map(luminance);
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.textContent];
  });
}"""
