"use strict";

/* The page shows the events of one stream of the service. Everything is inserted as text, never as markup. */

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
let token = sessionStorage.getItem("mlca-token");
let state = null;
let columns;

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const count = (value) => (value < 100000 ? whole.format(value) : short.format(value));
const share = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;

function since(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

function write(id, text) {
  const target = $(id);
  if (target.textContent !== text) target.textContent = text;
}

/* Requests */

async function ask(path, body) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const options = body === undefined ? { headers } : {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  const answer = await fetch(path, options);
  const content = await answer.json();
  if (answer.ok) return content;
  const { problem, remedy } = content.error;
  throw new Error(`${problem}; ${remedy}`);
}

async function listen() {
  for (;;) {
    try {
      const headers = token ? { Authorization: `Bearer ${token}` } : {};
      const answer = await fetch("/v1/events", { headers });
      if (answer.status === 401 || answer.status === 403) {
        tellStatus("lost", "needs a token");
        $("token-form").hidden = false;
        return;
      }
      $("token-form").hidden = true;
      if (answer.ok) await readEvents(answer.body.getReader());
    } catch (error) {
      /* The service cannot be reached; the loop tries again after a second. */
    }
    tellStatus("lost", "connecting to the service");
    await new Promise((done) => setTimeout(done, 1000));
  }
}

async function readEvents(reader) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const name = lines.find((line) => line.startsWith("event: "));
      const data = lines.find((line) => line.startsWith("data: "));
      if (name === "event: state" && data) show(JSON.parse(data.slice(6)));
    }
  }
}

/* Display */

function tellStatus(kind, text) {
  $("status").dataset.state = kind;
  write("status", text);
}

function show(now) {
  state = now;
  if (!now.ready) tellStatus("busy", "reading the log");
  else if (now.rebuilding && now.rebuild) tellStatus("busy", `forgetting: ${Math.floor((100 * now.rebuild.position) / Math.max(1, now.rebuild.end))} %`);
  else if (now.log_position > now.position + 1000) tellStatus("busy", `${count(now.log_position - now.position)} rows behind`);
  else tellStatus("live", "live");
  $("trouble").hidden = !now.trouble;
  write("trouble", now.trouble || "");
  write("position", whole.format(now.position));
  write("generation", whole.format(now.generation));
  write("waiting", whole.format(now.waiting));
  write("uptime", since(now.uptime));
  showTiles(now);
  showCurves(now);
  showLast(now.last || []);
  showLabels(now.labels);
  showAlarms(now.alarms);
  showColumns(now.columns);
}

function showTiles(now) {
  for (const [id, values] of [["exact", now.exact_match], ["f1", now.f1]]) {
    if (!values || values.recent === null) continue;
    write(id, share(values.recent));
    write(`${id}-note`, `last ${count(Math.min(500, now.pairs))} labelled rows; ${share(values.running)} over all`);
  }
  for (const kind of ["learned", "predicted"]) {
    const rates = now.rates[kind];
    const lately = rates.slice(-5);
    write(kind, count(lately.reduce((a, b) => a + b, 0) / Math.max(1, lately.length)));
    drawSpark($(`${kind}-spark`), rates, kind === "predicted");
  }
  write("nodes", count(now.nodes));
  write("nodes-note", now.rows ? `stand for ${plural(now.rows, "row", "rows")}` : "nothing learned yet");
  write("n-labels", count(now.n_labels || 0));
  const newest = now.labels.reduce((a, b) => (a && a.first >= b.first ? a : b), null);
  write("labels-note", newest ? `newest at ${count(newest.first)}` : "");
  const time = now.latency["/v1/predict"];
  if (time) {
    write("latency", time.p50 < 10 ? time.p50.toFixed(1) : count(time.p50));
    write("latency-note", `median; 99 % within ${time.p99 < 10 ? time.p99.toFixed(1) : count(time.p99)} ms`);
  }
  $("novelty-tile").hidden = now.novelty === null;
  if (now.novelty !== null) write("novelty", share(now.novelty));
}

function showCurves(now) {
  const curve = now.curve || [];
  const line = (place) => curve.map((point) => [point[0], point[place]]);
  draw("quality", [
    { name: "exact match", points: line(3), format: share },
    { name: "F1", points: line(4), format: share, kind: "b" },
    { name: "exact match, all", points: line(1), format: share, kind: "thin" },
    { name: "F1, all", points: line(2), format: share, kind: "b thin" },
  ], { top: 1, marks: now.alarms.map((alarm) => alarm.position) });
  draw("growth", [{ name: "nodes", points: line(5), format: count }, { name: "labels", points: line(6), format: count, kind: "b", own: true }], {});
  const seconds = (rates) => rates.map((rate, i) => [i + 1 - rates.length, rate]);
  draw("traffic", [
    { name: "learned", points: seconds(now.rates.learned), format: count, area: true },
    { name: "predicted", points: seconds(now.rates.predicted), format: count, kind: "b" },
  ], { x: (value) => (value === 0 ? "now" : `${value} s`), from: -120, to: 0 });
}

function chips(names, kind) {
  if (!names.length) return [element("span", { class: "none" }, "none")];
  return names.map((name) => element("span", { class: `chip ${kind(name)}` }, name));
}

let shownLast = "";
function showLast(rows) {
  const key = rows.length ? `${rows[0].position}/${state.generation}` : "";
  if (key === shownLast) return;
  shownLast = key;
  const body = $("last").tBodies[0];
  const focused = body.contains(document.activeElement) ? document.activeElement.dataset.id : null;
  body.replaceChildren(...rows.map((row) => {
    const why = element("button", { type: "button", "data-id": row.id, "aria-label": `Why row ${row.id} gets its labels` }, "why");
    why.addEventListener("click", () => explain({ id: row.id }, `Row ${row.id}`));
    const predicted = row.predicted === null ? [element("span", { class: "none" }, "not requested")]
      : chips(row.predicted, (name) => (row.labels.includes(name) ? "hit" : "vain"));
    const truth = chips(row.labels, (name) => (row.predicted === null ? "" : row.predicted.includes(name) ? "hit" : "missed"));
    return element("tr", {}, element("th", { scope: "row" }, row.id), element("td", {}, ...predicted), element("td", {}, ...truth), element("td", {}, why));
  }));
  if (focused !== null) [...body.querySelectorAll("button")].find((button) => button.dataset.id === focused)?.focus();
}

let shownLabels = "";
function showLabels(labels) {
  const key = JSON.stringify(labels);
  if (key === shownLabels) return;
  shownLabels = key;
  $("labels").tBodies[0].replaceChildren(...labels.map((label) => {
    const when = label.first ? `row ${whole.format(label.first)}` : "before";
    const title = label.at ? new Date(1000 * label.at).toLocaleString() : "known to the initial model";
    const quality = element("td", { class: "number" }, share(label.f1));
    if (label.f1 !== null) quality.append(element("meter", { value: label.f1, "aria-hidden": "true" }));
    return element("tr", {}, element("th", { scope: "row" }, label.label), element("td", { class: "number" }, whole.format(label.count)),
      element("td", { class: "number", title }, when), quality);
  }));
}

let shownAlarms = "";
function showAlarms(alarms) {
  const key = JSON.stringify(alarms);
  if (key === shownAlarms) return;
  shownAlarms = key;
  $("alarms-card").hidden = !alarms.length;
  $("alarms").replaceChildren(...alarms.map((alarm) => element("li", {}, alarm.text)));
}

function showColumns(now) {
  const key = JSON.stringify(now);
  if (key === columns || !now) return;
  columns = key;
  const names = now.names;
  const named = (name, i) => (now.kinds ? `${name} (${now.kinds[i]})` : name);
  write("x-hint", names ? `${plural(names.length, "column", "columns")}: ${names.slice(0, 30).map(named).join(", ")}${names.length > 30 ? " …" : ""}`
    : `A list of ${plural(now.width, "number", "numbers")}.`);
  if (!$("x").value && now.width) $("x").value = exampleRow(now);
}

function exampleRow({ names, kinds, width }) {
  if (!names) return `[${Array(width).fill(0).join(", ")}]`;
  const cells = names.map((name, i) => [name, exampleOf(kinds?.[i])]).filter(([, value]) => value !== undefined);
  return `{${cells.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`).join(", ")}}`;
}

function exampleOf(kind) {
  if (kind === "ignored") return undefined;
  if (kind === "boolean") return false;
  return kind === undefined || kind === "numeric" ? 0 : "";
}

/* Curves */

function drawSpark(svg, values, second) {
  const { width, height } = svg.getBoundingClientRect();
  if (!width || values.length < 2) return;
  const most = Math.max(1, ...values);
  const points = values.map((value, i) => `${(i * width / (values.length - 1)).toFixed(1)},${(height - 2 - (height - 4) * value / most).toFixed(1)}`);
  const kind = second ? " b" : "";
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren(
    shape("polygon", { class: `area${kind}`, points: `0,${height} ${points.join(" ")} ${width},${height}` }),
    shape("polyline", { class: `line${kind}`, points: points.join(" ") }),
  );
}

function ticks(most) {
  const step = 10 ** Math.floor(Math.log10(most)) || 1;
  const size = [0.2, 0.25, 0.5, 1, 2, 2.5, 5].map((factor) => factor * step).find((size) => most / size <= 5);
  return Array.from({ length: Math.floor(most / size + 1e-9) + 1 }, (_, i) => i * size);
}

const drawn = new Map();
function draw(id, series, options) {
  drawn.set(id, [series, options]);
  const svg = $(id);
  const { width, height } = svg.getBoundingClientRect();
  if (!width) return;
  const all = series.flatMap((one) => one.points.map((point) => point[0]));
  const from = options.from ?? Math.min(...all, 0), to = options.to ?? Math.max(...all, 1);
  const most = (group) => options.top ?? Math.max(1, ...group.flatMap((one) => one.points.map((point) => point[1] ?? 0)));
  const main = most(series.filter((one) => !one.own));
  const tickText = (tick) => (options.top ? tick.toFixed(1) : short.format(tick));
  const left = 10 + 7 * Math.max(...ticks(main).map((tick) => tickText(tick).length));
  const right = series.some((one) => one.own) ? 32 : 12, top = 8, bottom = 22;
  const x = (value) => left + (width - left - right) * (value - from) / Math.max(1e-9, to - from);
  const y = (value, scale) => height - bottom - (height - top - bottom) * value / scale;
  const parts = [];
  for (const tick of ticks(main)) {
    parts.push(shape("line", { class: tick ? "grid" : "axis", x1: left, x2: width - right, y1: y(tick, main), y2: y(tick, main) }));
    parts.push(shape("text", { x: left - 6, y: y(tick, main) + 4, "text-anchor": "end" }, tickText(tick)));
  }
  const xText = options.x ?? count;
  for (const [value, anchor] of [[from, "start"], [(from + to) / 2, "middle"], [to, "end"]]) {
    parts.push(shape("text", { x: x(value), y: height - 6, "text-anchor": anchor }, xText(Math.round(value))));
  }
  for (const mark of new Set(options.marks ?? [])) {
    if (mark >= from && mark <= to) parts.push(shape("line", { class: "mark", x1: x(mark), x2: x(mark), y1: top, y2: height - bottom }));
  }
  for (const one of series) {
    const scale = one.own ? most([one]) : main;
    if (one.own) {
      for (const tick of ticks(scale).slice(1)) parts.push(shape("text", { x: width - right + 6, y: y(tick, scale) + 4 }, short.format(tick)));
    }
    let path = "", pen = false;
    for (const [a, b] of one.points) {
      if (b === null) { pen = false; continue; }
      path += `${pen ? "L" : "M"}${x(a).toFixed(1)} ${y(b, scale).toFixed(1)}`;
      pen = true;
    }
    if (one.area && one.points.length > 1) {
      const ends = [one.points[0][0], one.points.at(-1)[0]].map((value) => x(value).toFixed(1));
      parts.push(shape("path", { class: `area ${one.kind ?? ""}`, d: `${path}L${ends[1]} ${y(0, 1)}L${ends[0]} ${y(0, 1)}Z` }));
    }
    if (path) parts.push(shape("path", { class: `line ${one.kind ?? ""}`, d: path }));
  }
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const cursor = svg.querySelector(".cursor");
  svg.replaceChildren(...parts, ...(cursor ? [cursor] : []));
  svg.readAt = (pixel) => from + (to - from) * Math.min(1, Math.max(0, (pixel - left) / Math.max(1, width - left - right)));
  svg.placeOf = x;
  tellValues(svg, id, series, cursor ? Number(cursor.dataset.at) : null);
}

function tellValues(svg, id, series, at) {
  const texts = series.map((one) => {
    const points = one.points.filter((point) => point[1] !== null);
    const nearest = at === null ? points.at(-1) : points.reduce((a, b) => (a && Math.abs(a[0] - at) <= Math.abs(b[0] - at) ? a : b), null);
    return [one, nearest ? one.format(nearest[1]) : "–"];
  });
  $(`${id}-legend`).replaceChildren(...texts.map(([one, text]) => element("span", { class: one.kind ?? "" }, element("i"), `${one.name} ${text}`)));
  svg.setAttribute("aria-label", texts.map(([one, text]) => `${one.name} ${text}`).join(", "));
}

for (const id of ["quality", "growth", "traffic"]) {
  const svg = $(id);
  svg.addEventListener("pointermove", (event) => {
    if (!svg.readAt) return;
    const at = svg.readAt(event.clientX - svg.getBoundingClientRect().left);
    const cursor = svg.querySelector(".cursor") ?? svg.appendChild(shape("line", { class: "cursor", y1: 4, y2: svg.getBoundingClientRect().height - 22 }));
    cursor.dataset.at = at;
    cursor.setAttribute("x1", svg.placeOf(at));
    cursor.setAttribute("x2", svg.placeOf(at));
    tellValues(svg, id, drawn.get(id)[0], at);
  });
  svg.addEventListener("pointerleave", () => {
    svg.querySelector(".cursor")?.remove();
    if (drawn.has(id)) tellValues(svg, id, drawn.get(id)[0], null);
  });
  new ResizeObserver(() => drawn.has(id) && draw(id, ...drawn.get(id))).observe(svg);
}

/* Form for predictions and explanations */

function bars(pairs) {
  const list = element("div", { class: "bars" });
  for (const [name, value] of pairs) {
    const bar = shape("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    bar.append(shape("rect", { class: "rest", width: 100, height: 10 }), shape("rect", { width: 100 * value, height: 10 }));
    list.append(element("span", {}, name), bar, element("span", { class: "number" }, share(value)));
  }
  return list;
}

function readX() {
  try {
    return JSON.parse($("x").value);
  } catch (error) {
    throw new Error("Not valid JSON; write a list such as [1.5, 0, 3], or an object that maps column names to values");
  }
}

$("try-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const answer = await ask("/v1/predict", { rows: [{ x: readX() }], top: 8 });
    const row = answer.rows[0];
    const line = element("p", {}, "Predicted: ", ...chips(row.labels, () => ""), element("span", { class: "note" },
      ` at position ${whole.format(answer.position)}${row.novelty === null ? "" : `, novelty ${share(row.novelty)}`}`));
    $("answer").replaceChildren(line, bars(Object.entries(row.probabilities)));
  } catch (error) {
    $("answer").replaceChildren(element("p", { class: "refused" }, error.message));
  }
});

$("why").addEventListener("click", async () => {
  try {
    await explain({ x: readX() }, "Your row");
  } catch (error) {
    $("answer").replaceChildren(element("p", { class: "refused" }, error.message));
  }
});

function remarks(found) {
  const listed = (values, wanted) => Object.entries(values).slice(0, wanted).map(([name, value]) => `${name} ${share(value)}`).join(", ");
  const texts = [];
  if (found.none !== null) texts.push(`No label: ${share(found.none)}. Novelty: ${share(found.novelty)}.`);
  for (const { label, reasons } of found.probabilities.filter((one) => found.labels.includes(one.label) && Object.keys(one.reasons).length)) {
    const added = Object.entries(reasons).map(([name, value]) => `${name} ${value > 0 ? "+" : ""}${value.toFixed(2)}`);
    texts.push(`Evidence for and against ${label}: ${added.join(", ")}.`);
  }
  if (found.far) texts.push("The row has nothing in common with any prototype: labels get their frequencies.");
  if (Object.keys(found.experts).length > 1) texts.push(`Weights of the experts: ${listed(found.experts)}.`);
  if (found.segments.length > 1) texts.push(`Parts of the past, oldest first: ${found.segments.map(share).join(", ")}.`);
  if (Object.keys(found.agreement).length) texts.push(`Features in which row and prototypes agree most: ${listed(found.agreement, 8)}.`);
  return texts;
}

function valuesTable(found) {
  if (!found.values.length) return [];
  const nodes = found.nodes.slice(0, found.values[0].nodes.length).map((node) => `node ${node.node}`);
  const head = ["column", "this row", ...nodes].map((name) => element("th", { scope: "col" }, name));
  const rows = found.values.map((one) => element("tr", {}, element("th", { scope: "row" }, one.column),
    ...[one.row, ...one.nodes].map((cell) => element("td", {}, cell))));
  return [element("h3", {}, "Values of the row and of the nearest prototypes"),
    element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)))];
}

async function explain(what, title) {
  write("explanation-title", title);
  const body = $("explanation-body");
  body.replaceChildren(element("p", { class: "note" }, "asking"));
  if (!$("explanation").open) $("explanation").showModal();
  try {
    const found = await ask("/v1/explain", { ...what, top: 8 });
    const rows = found.nodes.map((node) => element("tr", {}, element("th", { scope: "row" }, whole.format(node.node)),
      element("td", { class: "number" }, node.distance.toFixed(4)), element("td", { class: "number" }, whole.format(node.rows)),
      element("td", { class: "number" }, share(node.weight)),
      element("td", {}, ...Object.entries(node.labels).map(([name, n]) => element("span", { class: "chip" }, `${name} ${whole.format(n)}`)))));
    const heads = [["node", ""], ["distance", "number"], ["rows", "number"], ["weight", "number"], ["their labels", ""]];
    const head = element("thead", {}, element("tr", {}, ...heads.map(([name, kind]) => element("th", { scope: "col", class: kind }, name))));
    body.replaceChildren(
      element("p", {}, "Predicted by the model at position ", whole.format(found.position), ": ", ...chips(found.labels, () => "")),
      element("h3", {}, "Probabilities"), bars(found.probabilities.map((one) => [one.label, one.probability])),
      ...remarks(found).map((text) => element("p", { class: "note" }, text)),
      ...valuesTable(found),
      element("h3", {}, "The nearest prototypes, which voted"),
      element("div", { class: "scroll" }, element("table", {}, head, element("tbody", {}, ...rows))));
  } catch (error) {
    body.replaceChildren(element("p", { class: "refused" }, error.message));
  }
}

$("close").addEventListener("click", () => $("explanation").close());

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  sessionStorage.setItem("mlca-token", token);
  tellStatus("waiting", "connecting");
  listen();
});

listen();
