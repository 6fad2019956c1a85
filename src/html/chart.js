// Charts as SVG. Every chart says in words what it shows, and its numbers stand in a table beside it.

/** Sizes in the chart's own units, in which letters are 12 high: a small chart is for a narrow column. */
const CHART = {
  wide: { width: 720, height: 240, left: 70, right: 12, top: 12, bottom: 40, parts: 7 },
  large: { width: 640, height: 260, left: 62, right: 12, top: 12, bottom: 40, parts: 6 },
  medium: { width: 440, height: 260, left: 84, right: 10, top: 8, bottom: 38, parts: 5 },
  small: { width: 330, height: 170, left: 74, right: 10, top: 8, bottom: 38, parts: 4 },
};

/**
 * A chart of points [x, y]. `marks` are vertical lines { x, text, spread }; `area` fills below; `log` is for counts;
 * `dots` are further points, of which that at `here` is the chosen one; `limits` are further curves within the same range
 * of x, dashed.
 */
function lineChart({ points, label, xTitle, yTitle, marks = [], size = CHART.large, area = false, log = false, dots = [], here = null, limits = [] }) {
  const { width, height, left, right, top, bottom, parts } = size;
  const xs = points.map(([x]) => x);
  const ys = [...points, ...dots, ...limits.flat()].map(([, y]) => y).filter(Number.isFinite);
  const [firstX, lastX] = [Math.min(...xs), Math.max(...xs)];
  const scaled = (y) => (log ? Math.log10(Math.max(y, 0.5)) : y);
  let [low, high] = [Math.min(...ys), Math.max(...ys)].map(scaled);
  if (log) [low, high] = [-0.3, Math.max(Math.ceil(high), 1)];
  else if (!(high > low)) [low, high] = [low - 1, high + 1];
  else [low, high] = [low - 0.05 * (high - low), high + 0.05 * (high - low)];
  const x = (value) => left + ((value - firstX) / (lastX - firstX || 1)) * (width - left - right);
  const y = (value) => height - bottom - ((scaled(value) - low) / (high - low)) * (height - top - bottom);
  const svg = make("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const tick of log ? ticks(0, high, 4).filter(Number.isInteger) : ticks(low, high, height < 200 ? 4 : 5)) {
    const at = height - bottom - ((tick - low) / (high - low)) * (height - top - bottom);
    svg.append(make("line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }),
      make("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, log ? short(10 ** tick) : short(tick)));
  }
  for (const tick of ticks(firstX, lastX, parts)) {
    svg.append(make("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: height - bottom }),
      make("text", { x: x(tick), y: height - bottom + 16, "text-anchor": "middle" }, short(tick, 7)));
  }
  svg.append(make("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, xTitle),
    make("text", { x: 12, y: (top + height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(top + height - bottom) / 2})` }, yTitle));
  const inside = points.filter(([px, py]) => px >= firstX && px <= lastX && Number.isFinite(py));
  const path = inside.map(([px, py], i) => `${i ? "L" : "M"}${x(px).toFixed(2)} ${y(py).toFixed(2)}`).join("");
  const floor = height - bottom;
  if (area && inside.length) {
    svg.append(make("path", { class: "area", d: `${path}L${x(inside[inside.length - 1][0])} ${floor}L${x(inside[0][0])} ${floor}Z` }));
  } else {
    svg.append(make("path", { class: "curve", d: path }));
  }
  for (const limit of limits) {
    const path = limit.map(([px, py], i) => `${i ? "L" : "M"}${x(px).toFixed(2)} ${y(py).toFixed(2)}`).join("");
    svg.append(make("path", { class: "curve limit", d: path }));
  }
  for (const [px, py] of dots) svg.append(make("circle", { class: px === here ? "dot here" : "dot", cx: x(px), cy: y(py), r: px === here ? 6 : 3.5 }));
  const shown = marks.filter((mark) => mark.x >= firstX && mark.x <= lastX);
  for (const [row, { x: at, text, spread }] of shown.entries()) {
    if (spread > 0) {
      const [from, to] = [Math.max(x(at - spread), left), Math.min(x(at + spread), width - right)];
      svg.append(make("rect", { class: "band", x: from, y: top, width: to - from, height: height - top - bottom }));
    }
    const end = x(at) > (left + width) * 0.75;
    svg.append(make("line", { class: "mark", x1: x(at), x2: x(at), y1: top, y2: floor }),
      make("text", { class: "marked", x: x(at) + (end ? -5 : 5), y: top + 13 + 14 * row, "text-anchor": end ? "end" : "start" }, text));
  }
  svg.append(make("rect", { class: "frame", x: left, y: top, width: width - left - right, height: height - top - bottom }));
  return svg;
}

/** Every so many rows of a long table. */
function thinned(rows, most) {
  const by = Math.ceil(rows.length / most);
  return rows.filter((_, i) => i % by === 0);
}

/** What a verdict on the axis means, and what to do. */
const VERDICTS = {
  ok: "one clear minimum",
  railed: "the lowest cost is at the end of the range: widen --search",
  flat: "no position is much better than the others: check --rows and --flats",
  ambiguous: "another position is nearly as good: look at trial slices, fbp center --sweep",
  uncertain: "parts of the data disagree: look at trial slices, fbp center --sweep",
  angles: "the first and last projections contradict the angles: check --overall-angle or --angles",
};

/** The methods that search the axis, each with its verdict and its costs. `used` is the axis to compare with. */
function axisSearch(search, used) {
  const all = make("div", { class: "columns methods" });
  for (const found of search.methods) {
    if (found.reason) {
      all.append(make("figure", {}, make("h3", {}, found.method), make("p", { class: "quiet" }, `does not suit this scan: ${found.reason}`)));
      continue;
    }
    const { method, value, uncertainty, verdict, whole, near } = found;
    const ok = verdict === "ok";
    const said = `${short(value, 7)} bins` + (Number.isFinite(uncertainty) && uncertainty !== null ? ` ± ${short(uncertainty, 2)}` : "");
    const marks = [{ x: value, text: short(value, 7), spread: uncertainty ?? 0 }];
    const chart = (points, what) => lineChart({
      size: CHART.small, points, marks, xTitle: "axis in bins", yTitle: "cost",
      label: `Cost of axis positions by the method ${method}, ${what}, from ${short(points[0][0], 6)} to ${short(points[points.length - 1][0], 6)} bins. Lowest at ${said}; verdict ${verdict}.`,
    });
    const figure = make("figure", { "data-method": method },
      make("h3", {}, method, " "),
      make("p", {}, make("span", { class: "number" }, said), ", ", make("span", { class: `verdict ${ok ? "ok" : "bad"}` }, verdict), make("span", { class: "quiet" }, ` (${VERDICTS[verdict]})`),
        used === null ? null : make("span", { class: "quiet" }, Math.abs(value - used) < 0.0005 ? ", the axis used" : `, ${Math.abs(value - used).toFixed(3)} bins from the axis used`)));
    if (whole.length > 1) figure.append(make("p", { class: "quiet" }, "Whole range"), chart(whole, "over the whole range"));
    const about = near.length > 1 ? near : whole.filter(([x]) => Math.abs(x - value) <= 8);
    if (about.length > 2 && about.length < whole.length + near.length) figure.append(make("p", { class: "quiet" }, "Near the lowest cost"), chart(about, "near its lowest"));
    if (whole.length > 1) figure.append(asNumbers(dataTable(`Costs by ${method}`, ["axis in bins", "cost"], thinned(whole, 100))));
    all.append(figure);
  }
  const note = search.note ? make("p", { class: "notice" }, search.note) : "";
  return make("div", {}, note, make("p", { class: "quiet" }, `Each method separately, on rows ${search.rows.join(", ")}.`), all);
}
