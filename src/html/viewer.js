// Images with a window, a zoom, a scale bar and the value under the pointer.

/** The window of values that is shown from black to white, shared by the viewers that take it. */
class GreyWindow {
  constructor(low, high) {
    this.initial = [low, high];
    [this.low, this.high] = this.initial;
    this.listeners = [];
  }

  set(low, high) {
    [this.low, this.high] = [low, high];
    this.listeners.forEach((listener) => listener());
  }

  reset() {
    this.set(...this.initial);
  }

  /**
   * The window after the pointer has moved by these shares of the image: to the right is a wider window, upwards is
   * brighter.
   */
  dragged([low, high], across, down) {
    const width = (high - low) * Math.exp(2 * across);
    const level = (low + high) / 2 + down * (this.initial[1] - this.initial[0]);
    this.set(level - width / 2, level + width / 2);
  }

  /** Inputs for the level, which is in the middle, and the width. */
  controls(unit) {
    const [low, high] = this.initial;
    const step = 10 ** Math.floor(Math.log10(Math.max(high - low, 1e-30)) - 1.3);
    const number = (name) => make("input", { type: "number", step: "any", id: `window-${name}`, "data-step": step });
    const [width, level] = [number("width"), number("level")];
    const show = () => {
      width.value = Number((this.high - this.low).toPrecision(5));
      level.value = Number(((this.high + this.low) / 2).toPrecision(5));
    };
    const change = () => {
      const [w, l] = [Number(width.value), Number(level.value)];
      if (Number.isFinite(w) && w > 0 && Number.isFinite(l)) this.set(l - w / 2, l + w / 2);
    };
    for (const input of [width, level]) {
      input.addEventListener("change", change);
      // steps of the field's own would be of 1
      input.addEventListener("keydown", (event) => {
        const direction = { ArrowUp: 1, ArrowDown: -1 }[event.key];
        if (!direction) return;
        event.preventDefault();
        input.value = Number((Number(input.value) + direction * step).toPrecision(6));
        change();
      });
    }
    this.listeners.push(show);
    show();
    const reset = make("button", { type: "button", id: "window-reset", click: () => this.reset() }, "Reset window");
    return [make("label", {}, "Window", width), make("label", {}, "Level", level), make("span", { class: "quiet" }, unit), reset];
  }
}

/** The values between which nearly all of an image lies. */
function usualRange(values) {
  const sorted = Float32Array.from(values.filter(Number.isFinite)).sort();
  if (!sorted.length) return [0, 1];
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  let [low, high] = [at(0.005), at(0.995)];
  if (!(high > low)) [low, high] = [sorted[0], sorted[sorted.length - 1]];
  return high > low ? [low, high] : [low - 0.5, low + 0.5];
}

/** The part of the images that is seen, and what dragging does, shared by the viewers that show the same part. */
class View {
  constructor() {
    this.zoom = 1;
    this.origin = [0, 0];
    this.tool = "window";
    this.viewers = [];
  }

  /** Draws what is visible. */
  lay() {
    this.viewers.forEach((viewer) => viewer.lay());
  }

  use(tool) {
    this.tool = tool;
    this.viewers.forEach((viewer) => (viewer.canvas.style.touchAction = tool === "window" ? "" : "none"));
  }
}

/** Screen pixels that a pointer may move in a click. */
const CLICK = 3;
/** Largest size of a pixel of the image, in screen pixels. */
const LARGEST = 40;

/**
 * A canvas with what belongs to it. `images` are packed; `place(x, y)` says in words where a pixel is; `pixel` is the
 * length of a pixel of the image, `{ across, unit }`; `draw(context, at)` may draw over the image, where `at(x, y)` is the
 * place of a pixel's corner. Dragging changes the window, the wheel zooms about the pointer. Viewers of one `view` show the
 * same part of images of one size.
 */
class Viewer {
  constructor({ name, label, images, window: grey, place, unit, pixel = null, draw = null, smooth = true, aspect = 1, tall = 0.75, view = new View(), hint = "Point at the image, or use arrow keys, to read values." }) {
    Object.assign(this, { name, images, place, unit, pixel, overlay: draw, smooth, aspect, tall, view });
    view.viewers.push(this);
    this.index = 0;
    this.values = null;
    this.canvas = make("canvas", { id: `${name}-canvas`, tabindex: 0, role: "img", "aria-label": label });
    this.stage = make("div", { class: "stage" }, this.canvas);
    this.readout = make("output", { id: `${name}-value`, "aria-live": "polite" }, hint);
    this.bar = make("span");
    this.length = make("small");
    this.scale = make("div", { class: "scale", id: `${name}-scale`, hidden: !pixel }, this.length, this.bar);
    this.element = make("div", { class: "viewer" }, this.stage, make("div", { class: "under" }, this.readout, this.scale));
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, () => (this.drag = null));
    this.canvas.addEventListener("dblclick", () => this.grey?.reset());
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.use(grey);
    new ResizeObserver(() => this.lay()).observe(this.element);
  }

  /** Takes a window, which other viewers may share. */
  use(grey) {
    this.grey = grey;
    grey?.listeners.push(() => this.paint());
  }

  get image() {
    return this.images[this.index];
  }

  get zoom() {
    return this.view.zoom;
  }

  set zoom(zoom) {
    this.view.zoom = zoom;
  }

  get origin() {
    return this.view.origin;
  }

  set origin(origin) {
    this.view.origin = origin;
  }

  /** Shows another of the images. */
  async show(index) {
    this.index = index;
    const { image } = this;
    const values = await unpack(image);
    // another may have been asked for in the meantime
    if (image !== this.image) return;
    this.values = values;
    this.paint();
    if (this.cursor) this.read();
    this.profile?.update();
  }

  /** Samples as greys, at one canvas pixel each. */
  paint() {
    if (!this.values) return;
    const { width, height } = this.image;
    if (!this.grey) this.use(new GreyWindow(...usualRange(this.values)));
    const { low, high } = this.grey;
    const grey = new ImageData(width, height);
    const pixels = new Uint32Array(grey.data.buffer);
    const factor = 255 / (high - low);
    for (let i = 0; i < pixels.length; i += 1) {
      const level = (this.values[i] - low) * factor;
      const shade = level > 0 ? Math.min(Math.round(level), 255) : 0;
      pixels[i] = 0xff000000 | (shade * 0x010101);
    }
    this.plain ??= document.createElement("canvas");
    Object.assign(this.plain, { width, height });
    this.plain.getContext("2d").putImageData(grey, 0, 0);
    this.lay();
  }

  /** The size on the screen, and the screen pixels of a pixel of the image, across and down. */
  frame() {
    const { width, height } = this.image;
    const fit = Math.max(Math.min((this.element.clientWidth - 2) / width, (this.tall * Math.max(innerHeight, 600)) / (height * this.aspect), 8), 0.02);
    const size = [width * fit, height * fit * this.aspect].map((side) => Math.max(Math.round(side), 1));
    const least = [size[0] / width, size[1] / height];
    this.zoom = Math.min(Math.max(this.zoom, 1), Math.max(LARGEST / least[0], 1));
    const scales = least.map((scale) => scale * this.zoom);
    // nothing beyond the image
    this.origin = this.origin.map((first, axis) => Math.min(Math.max(first, 0), [width, height][axis] - size[axis] / scales[axis]));
    return { size, scales, least };
  }

  /** Draws what is visible. */
  lay() {
    if (!this.plain?.width || !this.element.clientWidth) return;
    const { size, scales } = this.frame();
    const dense = Math.min(devicePixelRatio || 1, 2);
    const backing = size.map((side) => Math.round(side * dense));
    if (this.canvas.width !== backing[0] || this.canvas.height !== backing[1]) [this.canvas.width, this.canvas.height] = backing;
    [this.canvas.style.width, this.canvas.style.height] = size.map((side) => `${side}px`);
    const context = this.canvas.getContext("2d");
    const [across, down] = scales.map((scale, axis) => (scale * backing[axis]) / size[axis]);
    const at = (x, y) => [(x - this.origin[0]) * across, (y - this.origin[1]) * down];
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.imageSmoothingEnabled = this.smooth && across < 1;
    context.drawImage(this.plain, ...at(0, 0), this.image.width * across, this.image.height * down);
    context.lineWidth = 2 * dense;
    this.overlay?.(context, at);
    this.profile?.draw(context, at);
    if (this.cursor && this.byKey) {
      const [x, y] = at(...this.cursor);
      context.setLineDash([]);
      context.strokeStyle = "#ffb000";
      context.strokeRect(x - 2 * dense, y - 2 * dense, across + 4 * dense, down + 4 * dense);
    }
    this.measure(scales[0], size[0]);
    if (this.zoomed) this.zoomed.textContent = `${Math.round(100 * scales[0])} %`;
  }

  /** The scale bar: a round length of at most a quarter of the width. */
  measure(across, shown) {
    if (!this.pixel) return;
    const raw = (shown / 4 / across) * this.pixel.across;
    const power = 10 ** Math.floor(Math.log10(raw));
    const round = [5, 2, 1].map((factor) => factor * power).find((length) => length <= raw);
    this.bar.style.width = `${(round / this.pixel.across) * across}px`;
    this.length.textContent = `${short(round)} ${this.pixel.unit}`;
  }

  /** The pixel under the pointer. */
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const { scales } = this.frame();
    const sides = [this.image.width, this.image.height];
    return [event.clientX - box.left, event.clientY - box.top].map((position, axis) => Math.min(Math.max(Math.floor(this.origin[axis] + position / scales[axis]), 0), sides[axis] - 1));
  }

  point(event) {
    this.cursor = this.under(event);
    this.byKey = false;
    this.read();
  }

  press(event) {
    this.point(event);
    const tool = event.button === 1 ? "move" : event.shiftKey && this.profile ? "profile" : this.view.tool;
    // fingers scroll the page unless a tool was chosen
    if (event.button > 1 || (event.pointerType === "touch" && tool === "window")) return;
    if (event.button === 1) event.preventDefault();
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { tool, x: event.clientX, y: event.clientY, origin: this.origin, pixel: this.cursor, grey: this.grey && [this.grey.low, this.grey.high], far: false };
  }

  move(event) {
    this.point(event);
    const { drag } = this;
    if (!drag || !this.values) return;
    const moved = [event.clientX - drag.x, event.clientY - drag.y];
    drag.far ||= Math.hypot(...moved) > CLICK;
    if (!drag.far) return;
    const { size, scales } = this.frame();
    if (drag.tool === "window") this.grey?.dragged(drag.grey, moved[0] / size[0], moved[1] / size[1]);
    else if (drag.tool === "profile") this.profile.set(drag.pixel, this.cursor);
    else {
      this.origin = drag.origin.map((first, axis) => first - moved[axis] / scales[axis]);
      this.view.lay();
    }
  }

  wheel(event) {
    const out = event.deltaY > 0;
    // at its whole size, the wheel scrolls the page
    if (!event.deltaY || !this.values || (out && this.zoom === 1)) return;
    event.preventDefault();
    const box = this.canvas.getBoundingClientRect();
    this.zoomBy(out ? 1 / 1.25 : 1.25, [event.clientX - box.left, event.clientY - box.top]);
    this.point(event);
  }

  /** Zooms about a place on the screen, or about the cursor or the middle. */
  zoomBy(factor, about = null) {
    const { size, scales } = this.frame();
    const held = about ?? (this.cursor && this.byKey ? this.cursor.map((pixel, axis) => (pixel + 0.5 - this.origin[axis]) * scales[axis]) : size.map((side) => side / 2));
    const fixed = held.map((position, axis) => this.origin[axis] + position / scales[axis]);
    this.zoom *= factor;
    const after = this.frame();
    this.origin = fixed.map((pixel, axis) => pixel - held[axis] / after.scales[axis]);
    this.view.lay();
  }

  key(event) {
    const zooms = { "+": 1.25, "=": 1.25, "-": 1 / 1.25, 0: 0 };
    if (event.key in zooms && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.zoomBy(zooms[event.key]);
      return;
    }
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const sides = [this.image.width, this.image.height];
    const by = event.shiftKey ? 10 : 1;
    const from = this.cursor ?? sides.map((side) => Math.floor(side / 2));
    this.cursor = from.map((pixel, axis) => Math.min(Math.max(pixel + by * move[axis], 0), sides[axis] - 1));
    this.byKey = true;
    // it stays in sight
    const { size, scales } = this.frame();
    this.origin = this.origin.map((first, axis) => Math.min(Math.max(first, this.cursor[axis] + 1 - size[axis] / scales[axis]), this.cursor[axis]));
    this.read();
    this.view.lay();
  }

  /** Says what is under the cursor. */
  read() {
    if (!this.values || !this.cursor) return;
    const [x, y] = this.cursor;
    if (x >= this.image.width || y >= this.image.height) return;
    const value = this.values[y * this.image.width + x];
    this.readout.textContent = `${this.place(x, y)}: ${precise(value, this.image.step)} ${this.unit}`;
    this.readout.dataset.x = x;
    this.readout.dataset.y = y;
    this.readout.dataset.value = value;
  }

  /** Buttons for what dragging does, and for the zoom. */
  tools(profile = null) {
    this.profile = profile;
    const choices = [["window", "Window"], ["move", "Move"], ...(profile ? [["profile", "Line profile"]] : [])];
    const buttons = choices.map(([tool, text]) => make("button", { type: "button", id: `${this.name}-drag-${tool}`, "aria-pressed": String(tool === this.view.tool), click: () => choose(tool) }, text));
    const choose = (tool) => {
      this.view.use(tool);
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(choices[i][0] === tool)));
      // without a pointer, too, there is a line
      if (tool === "profile" && !profile.ends) profile.across();
    };
    const zoom = (text, label, factor) => make("button", { type: "button", "aria-label": label, click: () => this.zoomBy(factor) }, text);
    this.zoomed = make("output", { id: `${this.name}-zoom`, "aria-label": "Screen pixels per pixel" });
    return [
      make("span", { class: "group", role: "group", "aria-label": "What dragging does" }, make("span", { class: "quiet" }, "Drag:"), ...buttons),
      make("span", { class: "group", role: "group", "aria-label": "Zoom" }, zoom("\u2212", "Zoom out", 1 / 1.25), zoom("+", "Zoom in", 1.25), zoom("Whole image", "Whole image", 0), this.zoomed),
    ];
  }

  /** How to use it, folded away. */
  help() {
    const rows = [
      "Drag sideways for the width of the window, upwards for brighter images; double click for the window as it was.",
      "Turn the wheel to zoom about the pointer; drag with Move or the middle button to see another part.",
      this.profile ? "Drag with Shift, or with Line profile, for the values along a line." : null,
      "Keys, when the image has the focus: arrows select a pixel (with Shift, by ten), + and \u2212 zoom about it, 0 shows the whole image.",
    ];
    return make("details", {}, make("summary", {}, "Mouse and keys"), make("ul", { class: "quiet" }, ...rows.filter(Boolean).map((row) => make("li", {}, row))));
  }

  /** A slider over the images; `said(index)` names one. */
  slider(name, label, first, said, changed = () => {}) {
    const { row, choose } = slider(name, label, this.images.length, first, said, (index) => {
      changed(index);
      return this.show(index);
    });
    this.choose = choose;
    return row;
  }
}

/** A slider over so many positions, which `said(index)` names. Returns its row, and a function that chooses a position. */
function slider(name, label, count, first, said, changed) {
  const input = make("input", { type: "range", id: `${name}-slider`, min: 0, max: count - 1, step: 1, value: first });
  const output = make("output", { id: `${name}-shown`, for: `${name}-slider` });
  const update = () => {
    const index = Number(input.value);
    output.textContent = said(index);
    input.setAttribute("aria-valuetext", said(index));
    return changed(index);
  };
  input.addEventListener("input", update);
  const choose = (index) => {
    input.value = index;
    return update();
  };
  update();
  return { row: make("div", { class: "slider" }, make("label", { for: `${name}-slider` }, label), input, output), choose };
}
