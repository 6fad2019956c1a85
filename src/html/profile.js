// The values along a line in an image.

/** Values at the points of a line from one pixel to another, as many as it has pixels; between pixels, interpolated. */
function alongLine(values, width, [x0, y0], [x1, y1]) {
  const steps = Math.max(Math.abs(x1 - x0), Math.abs(y1 - y0));
  const found = [];
  for (let i = 0; i <= steps; i += 1) {
    const share = steps ? i / steps : 0;
    const [x, y] = [x0 + share * (x1 - x0), y0 + share * (y1 - y0)];
    const [left, top] = [Math.floor(x), Math.floor(y)];
    let sum = 0;
    for (const [column, row] of [[left, top], [left + 1, top], [left, top + 1], [left + 1, top + 1]]) {
      const weight = (1 - Math.abs(x - column)) * (1 - Math.abs(y - row));
      // those without a part in it may lie beyond the image
      if (weight > 0) sum += weight * values[row * width + column];
    }
    found.push(sum);
  }
  return found;
}

/**
 * A line that is drawn in a viewer, with the values along it in a chart. `grid` says which pixels of the slice the pixels of
 * the image are: { x, y, by }.
 */
class Profile {
  constructor(viewer, grid) {
    Object.assign(this, { viewer, grid, ends: null });
    const { name } = viewer;
    const field = (end, axis, label) => {
      const input = make("input", { type: "number", step: grid.by, id: `${name}-${end}-${"xy"[axis]}` });
      input.addEventListener("change", () => this.typed());
      return [input, make("label", {}, label, input)];
    };
    const fields = [field("from", 0, "From x"), field("from", 1, "y"), field("to", 0, "To x"), field("to", 1, "y")];
    this.inputs = fields.map(([input]) => input);
    this.said = make("p", { id: `${name}-profile-said`, class: "quiet" });
    this.chart = make("div", { id: `${name}-profile-chart` });
    this.table = make("div", { id: `${name}-profile-table` });
    const remove = make("button", { type: "button", click: () => this.remove() }, "Remove the line");
    this.element = make("figure", { class: "profile", id: `${name}-profile`, hidden: true },
      make("figcaption", {}, make("h3", {}, "Line profile")), this.said, this.chart,
      make("div", { class: "controls" }, ...fields.map(([, label]) => label)),
      make("div", { class: "controls" }, copyButton("Copy the values", () => this.text()), remove), this.table);
  }

  /** Draws the line between two pixels. */
  set(from, to) {
    this.ends = [from, to];
    this.update();
    this.viewer.lay();
  }

  /** A line across the image, through the cursor or the middle. */
  across() {
    const { image, cursor } = this.viewer;
    const y = cursor?.[1] ?? Math.floor(image.height / 2);
    this.set([0, y], [image.width - 1, y]);
  }

  /** Takes the ends from the fields. */
  typed() {
    const { x, y, by } = this.grid;
    const { width, height } = this.viewer.image;
    const pixel = (i) => Math.min(Math.max(Math.floor((Number(this.inputs[i].value) - [x, y][i % 2]) / by), 0), [width, height][i % 2] - 1);
    this.set([pixel(0), pixel(1)], [pixel(2), pixel(3)]);
  }

  remove() {
    this.ends = null;
    this.element.hidden = true;
    this.viewer.lay();
    this.viewer.canvas.focus();
  }

  /** Distances from the first end and values. */
  points() {
    const { values, image, pixel } = this.viewer;
    const [from, to] = this.ends;
    const found = alongLine(values, image.width, from, to);
    const length = Math.hypot(to[0] - from[0], to[1] - from[1]) * pixel.across;
    return found.map((value, i) => [found.length > 1 ? (length * i) / (found.length - 1) : 0, value]);
  }

  text() {
    return [`distance (${this.viewer.pixel.unit})\tvalue (${this.viewer.unit})`, ...this.points().map((point) => point.map((number) => short(number, 7)).join("\t"))].join("\n");
  }

  /** Shows the values of the image that is there now. */
  update() {
    const { viewer } = this;
    this.element.hidden = !this.ends;
    if (!this.ends || !viewer.values) return;
    const points = this.points();
    const values = points.map(([, value]) => value).filter(Number.isFinite);
    const { x, y, by } = this.grid;
    const [[x0, y0], [x1, y1]] = this.ends.map(([column, row]) => [x + column * by, y + row * by]);
    [x0, y0, x1, y1].forEach((value, i) => (this.inputs[i].value = value));
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const { unit, pixel } = viewer;
    const length = `${short(points[points.length - 1][0], 5)} ${pixel.unit}`;
    this.said.textContent = values.length
      ? `From x ${x0}, y ${y0} to x ${x1}, y ${y1}, ${length}: ${short(Math.min(...values))} to ${short(Math.max(...values))} ${unit}, mean ${short(mean)}.`
      : "No finite values along the line.";
    const drawn = points.length > 1 && values.length;
    this.chart.replaceChildren(...(drawn ? [lineChart({
      points, size: CHART.wide, xTitle: `distance in ${pixel.unit}`, yTitle: `attenuation ${unit}`,
      label: `Values along the line from x ${x0}, y ${y0} to x ${x1}, y ${y1}: ${short(Math.min(...values))} to ${short(Math.max(...values))} ${unit}.`,
    })] : []));
    const open = this.table.querySelector("details")?.open;
    const table = asNumbers(dataTable("Values along the line", [`distance in ${pixel.unit}`, unit], points));
    table.open = Boolean(open);
    this.table.replaceChildren(table);
  }

  draw(context, at) {
    if (!this.ends) return;
    const [from, to] = this.ends.map(([x, y]) => at(x + 0.5, y + 0.5));
    context.setLineDash([]);
    for (const [width, colour] of [[2, "#000000"], [1, "#ffb000"]]) {
      const before = context.lineWidth;
      context.lineWidth = before * width;
      context.strokeStyle = colour;
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...to);
      context.stroke();
      context.lineWidth = before;
    }
  }
}
