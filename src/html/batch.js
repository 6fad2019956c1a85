// The page of all scans of a batch: a table that sorts and filters.

/** A path as the address of a link: from this page, or of a file. */
function address(path) {
  const encoded = path.split("/").map(encodeURIComponent).join("/");
  return path.startsWith("/") ? `file://${encoded}` : `./${encoded}`;
}

const STATES = ["failed", "stopped", "running", "waiting", "done"];
const ORDER = new Intl.Collator("en", { numeric: true });

/** The axis with the digits that its standard deviation gives a meaning to. */
function axisText(axis) {
  if (axis.uncertainty === null) return short(axis.value, 7);
  const digits = Math.min(Math.max(1 - Math.floor(Math.log10(axis.uncertainty || 1)), 0), 6);
  return `${axis.value.toFixed(digits)} \u00b1 ${axis.uncertainty.toFixed(digits)}`;
}

/** What is wrong with a scan: its error, then its doubts. */
function remarks(scan) {
  const parts = [];
  if (scan.error) {
    parts.push(make("p", { class: "message" }, make("strong", {}, `Exit code ${scan.error.exit_code}: `), scan.error.message));
  }
  if (scan.state === "stopped") parts.push(make("p", {}, "Stopped: run the batch again with --resume."));
  if (scan.doubts.length > 0) {
    const line = (doubt) => make("li", {}, `${doubt.what}; ${doubt.advice}`);
    parts.push(make("ul", { class: "doubts" }, ...scan.doubts.map(line)));
  }
  return parts;
}

/** Where a scan is, and what ran it. */
function files(scan) {
  const facts = [["input", scan.input], ["output", scan.output], ["started", scan.started || ""], ["shard", scan.shard || ""]];
  const lines = facts.filter(([, value]) => value !== "").flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  return make("details", {}, make("summary", {}, "Files"), make("dl", {}, ...lines));
}

/** The columns: head, value to sort by, and content of a cell. */
const COLUMNS = [
  {
    head: "Slice",
    cell: (scan) => scan.picture ? [make("img", { src: `data:image/png;base64,${scan.picture}`, alt: "", width: 96, height: 96 })] : [],
  },
  {
    head: "Scan",
    by: (scan) => scan.name,
    cell: (scan) => [scan.page ? make("a", { href: address(scan.page) }, scan.name) : scan.name, files(scan)],
  },
  {
    head: "State",
    by: (scan) => STATES.indexOf(scan.state),
    cell: (scan) => [make("span", { class: `state ${scan.state}` }, scan.state)],
  },
  {
    head: "Axis in bins",
    by: (scan) => scan.axis && scan.axis.value,
    cell: (scan) => scan.axis ? [axisText(scan.axis)] : [],
    number: true,
  },
  { head: "Found by", by: (scan) => scan.axis && scan.axis.method, cell: (scan) => scan.axis ? [scan.axis.method] : [] },
  { head: "Slices", by: (scan) => scan.slices, cell: (scan) => scan.slices === null ? [] : [count(scan.slices)], number: true },
  { head: "Time", by: (scan) => scan.seconds, cell: (scan) => scan.seconds === null ? [] : [time(scan.seconds)], number: true },
  { head: "Errors and doubts", by: (scan) => (scan.error ? 1000 : 0) + scan.doubts.length, cell: remarks },
];

let sorted = { column: 1, up: true };

/** Compares two scans by a column; those without a value come last. */
function compare(a, b, { column, up }) {
  const [x, y] = [a, b].map(COLUMNS[column].by);
  const missing = (value) => value === null || value === undefined;
  if (missing(x) || missing(y)) return Number(missing(x)) - Number(missing(y));
  const order = typeof x === "number" ? x - y : ORDER.compare(x, y);
  return up ? order : -order;
}

/** All text of a scan that the search looks at. */
function searched(scan) {
  const doubts = scan.doubts.map((doubt) => `${doubt.name} ${doubt.what}`);
  return [scan.name, scan.input, scan.state, scan.axis && scan.axis.method, scan.error && scan.error.message, ...doubts]
    .filter(Boolean).join(" ").toLowerCase();
}

const TEXTS = new Map(DATA.scans.map((scan) => [scan, searched(scan)]));

function headRow() {
  const head = ({ head: name, by, number }, column) => {
    const here = sorted.column === column;
    if (!by) return make("th", { scope: "col", role: "columnheader", class: "plain" }, name);
    const sort = () => {
      sorted = { column, up: here ? !sorted.up : true };
      show();
      document.querySelectorAll("#scans thead button")[column - 1].focus();
    };
    return make("th", {
      scope: "col", role: "columnheader", class: number ? "number" : null,
      "aria-sort": here ? (sorted.up ? "ascending" : "descending") : "none",
    }, make("button", { type: "button", click: sort }, name));
  };
  return make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...COLUMNS.map(head)));
}

function bodyRow(scan) {
  const cell = ({ head, cell: content, number }, column) => column === 1
    ? make("th", { scope: "row", role: "rowheader" }, ...content(scan))
    : make("td", { role: "cell", class: number ? "number" : null, "data-label": column > 2 ? head : null }, ...content(scan));
  return make("tr", { role: "row" }, ...COLUMNS.map(cell));
}

function show() {
  const text = byId("text").value.trim().toLowerCase();
  const state = byId("state").value;
  const doubtful = byId("doubts").checked;
  const shown = DATA.scans.filter((scan) => (!state || scan.state === state)
    && (!doubtful || scan.error || scan.doubts.length > 0)
    && TEXTS.get(scan).includes(text));
  shown.sort((a, b) => compare(a, b, sorted) || ORDER.compare(a.name, b.name));
  byId("count").textContent = shown.length === DATA.scans.length
    ? `${shown.length} scans` : `${shown.length} of ${DATA.scans.length} scans`;
  byId("scans").replaceChildren(
    make("caption", { class: "quiet" }, "Select the name of a column to sort by it."),
    headRow(),
    make("tbody", { role: "rowgroup" }, ...shown.map(bodyRow)),
  );
}

const states = STATES.map((state) => [state, DATA.scans.filter((scan) => scan.state === state).length]);
const present = states.filter(([, number]) => number > 0);
byId("title").textContent = `${DATA.scans.length} scans`;
byId("subtitle").textContent = `${present.map(([state, number]) => `${number} ${state}`).join(", ")} \u2013 ${DATA.directory}`;
byId("missing").append(...DATA.missing.map((why) => make("li", { class: "warning" }, `Scans of another job are missing: ${why}`)));
byId("state").append(...present.map(([state, number]) => make("option", { value: state }, `${state} (${number})`)));
for (const [id, event] of [["text", "input"], ["state", "change"], ["doubts", "change"]]) byId(id).addEventListener(event, show);
byId("footer").textContent = `Made by ${DATA.software} from the states of ${DATA.jobs} ${DATA.jobs === 1 ? "job" : "jobs"}, last changed ${DATA.updated}. Load the page again to see what has changed since.`;
show();
document.body.dataset.ready = "yes";
