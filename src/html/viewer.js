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
    const reset = make("button", { type: "button", id: "window-reset", click: () => this.set(...this.initial) }, "Reset window");
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

/**
 * A canvas with what belongs to it. `images` are packed; `place(x, y)` says in words where a pixel is; `pixel` is the
 * length of a pixel of the image, `{ across, unit }`; `draw(context, scale)` may draw over the image.
 */
class Viewer {
  constructor({ name, label, images, window: grey, place, unit, pixel = null, draw = null, smooth = true, aspect = 1, tall = 0.75 }) {
    Object.assign(this, { images, grey, place, unit, pixel, overlay: draw, smooth, aspect, tall });
    this.index = 0;
    this.zoom = 0;
    this.values = null;
    this.cache = new Map();
    this.canvas = make("canvas", { id: `${name}-canvas`, tabindex: 0, role: "img", "aria-label": label });
    this.stage = make("div", { class: "stage" }, this.canvas);
    this.readout = make("output", { id: `${name}-value`, "aria-live": "polite" }, "Point at the image, or use arrow keys, to read values.");
    this.bar = make("span");
    this.length = make("small");
    this.scale = make("div", { class: "scale", id: `${name}-scale`, hidden: !pixel }, this.length, this.bar);
    this.element = make("div", { class: "viewer" }, this.stage, make("div", { class: "under" }, this.readout, this.scale));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerdown", (event) => this.point(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    grey?.listeners.push(() => this.paint());
    new ResizeObserver(() => this.lay()).observe(this.element);
  }

  get image() {
    return this.images[this.index];
  }

  /** Shows another of the images. */
  async show(index) {
    this.index = index;
    if (!this.cache.has(index)) {
      if (this.cache.size > 24) this.cache.delete(this.cache.keys().next().value);
      this.cache.set(index, unpack(this.images[index]));
    }
    const values = await this.cache.get(index);
    // another may have been asked for in the meantime
    if (index !== this.index) return;
    this.values = values;
    this.paint();
    if (this.cursor) this.read();
  }

  /** Samples as greys, at one canvas pixel each. */
  paint() {
    if (!this.values) return;
    const { width, height } = this.image;
    if (!this.grey) this.grey = new GreyWindow(...usualRange(this.values));
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

  /** Screen pixels of one pixel of the image, across and down. */
  scales() {
    const { width, height } = this.image;
    const fit = Math.min((this.element.clientWidth - 2) / width, (this.tall * Math.max(innerHeight, 600)) / (height * this.aspect), 8);
    const across = this.zoom || Math.max(fit, 0.05);
    return [across, across * this.aspect];
  }

  /** Draws at the size on the screen. */
  lay() {
    if (!this.plain?.width || !this.element.clientWidth) return;
    const { width, height } = this.image;
    const [across, down] = this.scales();
    const dense = Math.min(devicePixelRatio || 1, 2);
    const [shownWidth, shownHeight] = [Math.max(Math.round(width * across), 1), Math.max(Math.round(height * down), 1)];
    const size = [shownWidth, shownHeight].map((side) => Math.min(Math.round(side * dense), 8192));
    if (this.canvas.width !== size[0] || this.canvas.height !== size[1]) [this.canvas.width, this.canvas.height] = size;
    this.canvas.style.width = `${shownWidth}px`;
    this.canvas.style.height = `${shownHeight}px`;
    const context = this.canvas.getContext("2d");
    context.imageSmoothingEnabled = this.smooth && across * dense < 1;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.plain, 0, 0, size[0], size[1]);
    context.setTransform(size[0] / width, 0, 0, size[1] / height, 0, 0);
    this.overlay?.(context, [size[0] / width, size[1] / height]);
    if (this.cursor && this.byKey) {
      const [x, y] = this.cursor;
      context.lineWidth = dense * width / size[0];
      context.strokeStyle = "#ffb000";
      context.strokeRect(x - 2, y - 2, 5, 5);
    }
    this.measure(across);
  }

  /** The scale bar: a round length near a fifth of the width. */
  measure(across) {
    if (!this.pixel) return;
    const target = Math.min(this.image.width * across, this.element.clientWidth) / 4;
    const raw = (target / across) * this.pixel.across;
    const power = 10 ** Math.floor(Math.log10(raw));
    const round = [5, 2, 1].map((factor) => factor * power).find((length) => length <= raw);
    this.bar.style.width = `${(round / this.pixel.across) * across}px`;
    this.length.textContent = `${short(round)} ${this.pixel.unit}`;
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const { width, height } = this.image;
    const at = (position, side, pixels) => Math.min(Math.max(Math.floor((position / side) * pixels), 0), pixels - 1);
    this.cursor = [at(event.clientX - box.left, box.width, width), at(event.clientY - box.top, box.height, height)];
    this.byKey = false;
    this.read();
  }

  key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const { width, height } = this.image;
    const by = event.shiftKey ? 10 : 1;
    const [x, y] = this.cursor ?? [Math.floor(width / 2), Math.floor(height / 2)];
    this.cursor = [Math.min(Math.max(x + by * move[0], 0), width - 1), Math.min(Math.max(y + by * move[1], 0), height - 1)];
    this.byKey = true;
    this.read();
    this.lay();
  }

  /** Says what is under the cursor. */
  read() {
    if (!this.values || !this.cursor) return;
    const [x, y] = this.cursor;
    const value = this.values[y * this.image.width + x];
    this.readout.textContent = `${this.place(x, y)}: ${precise(value, this.image.step)} ${this.unit}`;
    this.readout.dataset.x = x;
    this.readout.dataset.y = y;
    this.readout.dataset.value = value;
  }

  /** A choice of how large pixels are on the screen; what is in the middle stays there. */
  zoomControl() {
    const choices = [["0", "fit"], ["1", "1 to 1"], ["2", "2 x"], ["4", "4 x"], ["8", "8 x"]];
    const select = make("select", {}, ...choices.map(([value, text]) => make("option", { value }, text)));
    select.addEventListener("change", () => {
      const { stage } = this;
      const middle = (first, shown, all) => (first + shown / 2) / Math.max(all, 1);
      const [x, y] = [middle(stage.scrollLeft, stage.clientWidth, stage.scrollWidth), middle(stage.scrollTop, stage.clientHeight, stage.scrollHeight)];
      this.zoom = Number(select.value);
      this.lay();
      stage.scrollLeft = x * stage.scrollWidth - stage.clientWidth / 2;
      stage.scrollTop = y * stage.scrollHeight - stage.clientHeight / 2;
    });
    return make("label", {}, "Zoom", select);
  }

  /** A slider over the images; `said(index)` names one. */
  slider(name, label, first, said, changed = () => {}) {
    const input = make("input", { type: "range", id: `${name}-slider`, min: 0, max: this.images.length - 1, step: 1, value: first });
    const output = make("output", { id: `${name}-shown`, for: `${name}-slider` });
    const update = () => {
      const index = Number(input.value);
      output.textContent = said(index);
      input.setAttribute("aria-valuetext", said(index));
      changed(index);
      return this.show(index);
    };
    input.addEventListener("input", update);
    this.choose = (index) => {
      input.value = index;
      return update();
    };
    update();
    return make("div", { class: "slider" }, make("label", { for: `${name}-slider` }, label), input, output);
  }
}
