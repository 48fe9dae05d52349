"use strict";

// Clicks on a column header sort the rows in ascending order, then in descending order, then in the original order.
const NEXT = { none: "ascending", ascending: "descending", descending: "none" };
const text = new Intl.Collator("en", { numeric: true });

function compare(a, b) {
  if (a.dataset.value !== undefined && b.dataset.value !== undefined) {
    return Number(a.dataset.value) - Number(b.dataset.value) || 0; // the difference of two infinities is NaN
  }
  if (a.dataset.value !== undefined) return -1;
  if (b.dataset.value !== undefined) return 1;
  return text.compare(a.textContent, b.textContent);
}

function sortRows(rows, column, order) {
  if (order === "none") return rows;
  const missing = (row) => row.cells[column].classList.contains("missing");
  const sign = order === "ascending" ? 1 : -1;
  const known = rows.filter((row) => !missing(row));
  known.sort((a, b) => sign * compare(a.cells[column], b.cells[column]));
  return [...known, ...rows.filter(missing)];
}

for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => {
      const order = NEXT[head.ariaSort];
      for (const other of heads) other.ariaSort = "none";
      head.ariaSort = order;
      body.append(...sortRows(rows, column, order));
    });
    head.append(button);
    head.ariaSort = "none";
  });
}
