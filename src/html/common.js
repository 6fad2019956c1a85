// What all pages need: data, elements, numbers, packed images.

const DATA = JSON.parse(document.getElementById("data").textContent);

/** The element of the page with this id. */
const byId = (id) => document.getElementById(id);

/** An element with attributes, properties (functions become listeners) and children. */
function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "line", "rect", "text", "circle", "title"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A number with so many significant digits, without an exponent where that is readable. */
function short(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "not known";
  const size = Math.abs(value);
  if (value !== 0 && (size < 1e-4 || size >= 1e7)) return Number(value.toPrecision(digits)).toExponential().replace("e+", "e");
  return String(Number(value.toPrecision(digits)));
}

/** A value with the decimals that the step between samples gives a meaning to. */
function precise(value, step) {
  if (!Number.isFinite(value)) return "not finite";
  const size = Math.max(Math.abs(value), step);
  const digits = Math.floor(Math.log10(size)) - Math.floor(Math.log10(step)) + 1;
  if (size < 1e-4 || size >= 1e7) return value.toExponential(Math.min(Math.max(digits - 1, 0), 8)).replace("e+", "e");
  return value.toFixed(Math.min(Math.max(-Math.floor(Math.log10(step)), 0), 12));
}

const count = (number) => number.toLocaleString("en-GB");

/** So many of something. */
const several = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** A time in seconds for people. */
function time(seconds) {
  if (seconds < 0.01) return "below 0.01 s";
  if (seconds < 60) return `${short(seconds, 3)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

/** Round numbers that divide a range into about so many parts. */
function ticks(low, high, parts) {
  const raw = (high - low) / parts;
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) found.push(Number((i * step).toPrecision(12)));
  return found;
}

/** What was unpacked before: all images of a page together are small. */
const UNPACKED = new WeakMap();

/** The values of an image, as 32-bit floats; not a number where the value was not finite. */
function unpack(image) {
  if (image.values) return image.values;
  if (!UNPACKED.has(image)) UNPACKED.set(image, unpacked(image));
  return UNPACKED.get(image);
}

async function unpacked(image) {
  const text = atob(image.samples);
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const { width, height, low, step } = image;
  const values = new Float32Array(width * height);
  for (let y = 0, i = 0; y < height; y += 1) {
    for (let x = 0, sample = 0; x < width; x += 1, i += 1) {
      sample = (sample + planes[i] + (planes[i + width * height] << 8)) & 0xffff;
      values[i] = sample === 0xffff ? NaN : low + sample * step;
    }
  }
  return values;
}

/** A button that copies a text, and says that it did. */
function copyButton(label, text) {
  const button = make("button", { type: "button", class: "main" }, label);
  const status = make("span", { role: "status", class: "quiet" });
  button.addEventListener("click", async () => {
    const copied = await copyText(text());
    status.textContent = copied ? "copied" : "select the text and copy it";
    setTimeout(() => (status.textContent = ""), 3000);
  });
  return make("span", { class: "controls" }, button, status);
}

/** Copies a text; pages that are opened from a file may not use the newer way. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make("textarea", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}

/** A table of two columns. */
function factTable(rows) {
  const row = ([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value));
  return make("table", { class: "facts" }, make("tbody", {}, ...rows.filter(([, value]) => value !== null && value !== "").map(row)));
}

/** A table with a head; columns of numbers are to the right. */
function dataTable(caption, heads, rows) {
  const cell = (tag, value) => make(tag, { class: typeof value === "number" ? "number" : null, scope: tag === "th" ? "col" : null },
    typeof value === "number" ? short(value, 7) : value);
  return make("table", {}, make("caption", { class: "quiet" }, caption),
    make("thead", {}, make("tr", {}, ...heads.map((head) => cell("th", head)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((value) => cell("td", value))))));
}

/** A table that is folded away: what a chart shows, in numbers. */
function asNumbers(table) {
  return make("details", {}, make("summary", {}, "As a table"), make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table" }, table));
}
