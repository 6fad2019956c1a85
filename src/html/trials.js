// The page of trial slices: which values of one or two flags are best, such as which axis is the sharpest?

(() => {
  const { varied, trials, part, unit, pixel, row, search, score: scored } = DATA;
  const images = trials.map((trial) => trial.image);
  const counts = varied.map((flag) => flag.values.length);
  /** With a search the axis is all that is varied. */
  const axes = search ? varied[0].values.map(Number) : null;
  const best = scored ? trials.reduce((lowest, trial, i) => (trial.score < trials[lowest].score ? i : lowest), 0) : null;
  const saidOf = (flag, i) => (axes ? `${axes[i].toFixed(2)} bins` : varied[flag].values[i]);
  const said = (i) => (axes ? saidOf(0, i) : varied.map((flag, at) => `${flag.flag} ${trials[i].values[at]}`).join(", "));
  /** The first method that is certain of an axis among the trials, and the trial next to it. */
  const certain = axes ? search.methods.find((found) => found.verdict === "ok" && found.value >= Math.min(...axes) && found.value <= Math.max(...axes)) : null;
  const near = certain ? axes.reduce((nearest, axis, i) => (Math.abs(axis - certain.value) < Math.abs(axes[nearest] - certain.value) ? i : nearest), 0) : null;

  function head() {
    byId("title").textContent = axes ? `Rotation axis of ${DATA.name}: trial slices` : `Trial slices of ${DATA.name}`;
    byId("subtitle").textContent = axes
      ? `Row ${row}, ${trials.length} positions from ${said(0)} to ${said(trials.length - 1)}`
      : `Row ${row}, ${trials.length} slices: ${varied.map((flag) => `${several(flag.values.length, "value")} of ${flag.flag}`).join(" and ")}`;
    byId("footer").textContent = `Written by fbp ${DATA.program}. This file is self-contained: it needs no network, and you can send it to others.`;
  }

  const line = make("pre", { id: "line", tabindex: 0, role: "region", "aria-label": "Command" });

  const unitOfScore = "per bin";

  function score(i) {
    if (!scored) return;
    byId("trials-score").textContent = `${said(i)}: ${short(trials[i].score, 4)}${i === best ? ", the lowest of the trials" : ""}`;
    if (trials.length < 2) return;
    const marks = search.methods.filter((found) => found.verdict === "ok").map((found) => ({ x: found.value, text: found.method }));
    byId("score-chart").replaceChildren(lineChart({
      points: scored.between, dots: trials.map((trial, at) => [axes[at], trial.score]), here: axes[i], marks,
      size: CHART.medium, xTitle: "axis in bins", yTitle: `score (${unitOfScore})`,
      label: `Score of every trial axis. It is lowest of the trials at ${said(best)}; the slice shown, at ${said(i)}, has ${short(trials[i].score, 4)}.`,
    }));
  }

  /** What the scores say, in the words of the search methods. */
  const SAID = {
    ok: VERDICTS.ok,
    railed: "the lowest score is at an end of the trials: widen their range",
    flat: "no position is much better than the others",
    ambiguous: "another position is nearly as good: compare them by eye",
    uncertain: "parts of the slice disagree: compare by eye",
  };

  function scores() {
    if (!axes) return;
    byId("score-section").hidden = false;
    if (!scored) {
      byId("score").append(make("p", { class: "quiet" }, "There is no score: negative values say nothing about the axis of an extended field, of a row without a sample, or of a few projections. Judge by eye, and by the methods below."));
      return;
    }
    byId("score").append(make("p", { class: "quiet" }, `The mean of the negative values in a slice of row ${row} from half a turn, as the method sweep measures it. A wrong axis causes more of them, so the lowest score is often the best axis, but judge by eye. Dots are the trials; lines mark positions of which another method is certain.`));
    if (trials.length > 1) {
      const { value, uncertainty, verdict } = scored;
      const spread = Number.isFinite(uncertainty) && uncertainty !== null ? ` \u00b1 ${short(uncertainty, 2)}` : "";
      byId("score").append(make("p", { id: "score-lowest" }, "Lowest score: ", make("span", { class: "number" }, `${value.toFixed(2)} bins${spread}`), ", ",
        make("span", { class: `verdict ${verdict === "ok" ? "ok" : "bad"}` }, verdict), make("span", { class: "quiet" }, ` (${SAID[verdict]})`)));
    }
    byId("score").append(make("p", {}, "Shown: ", make("output", { id: "trials-score" })), make("div", { id: "score-chart" }),
      asNumbers(dataTable("Scores", ["axis in bins", `score (${unitOfScore})`], trials.map((trial, i) => [axes[i], trial.score]))));
  }

  /** What viewers of the same part have in common. */
  function shared(grey) {
    const view = new View();
    const place = (x, y) => `x ${part.left + x}, y ${part.top + y} from the middle`;
    return { window: grey, unit, smooth: false, view, place };
  }

  /** A slice of the grid, which `choose` shows above. */
  function tile(i, common, choose) {
    const viewer = new Viewer({ ...common, name: `tile-${i}`, images: [images[i]], hint: "", label: `Trial slice, ${said(i)}. Arrow keys select the pixel whose value is shown.` });
    const name = make("button", { type: "button", "aria-pressed": "false", click: () => choose(i) }, said(i));
    const copy = copyButton("Copy", () => trials[i].command);
    copy.querySelector("button").setAttribute("aria-label", `Copy the command for ${said(i)}`);
    byId("tiles").append(make("figure", {}, make("figcaption", {}, name, copy), viewer.element));
    return { name, shown: viewer.show(0) };
  }

  async function slices() {
    // the trial in the middle is shown first
    const at = counts.map((number) => Math.floor(number / 2));
    const index = () => (at[1] ?? 0) * counts[0] + at[0];
    const grey = new GreyWindow(...usualRange(await unpack(images[index()])));
    const common = shared(grey);
    const viewer = new Viewer({
      ...common, name: "trials", images,
      pixel: pixel ? { across: pixel.size, unit: pixel.unit } : { across: 1, unit: "pixels" },
      label: "Trial slice. Arrow keys select the pixel whose value is shown.",
    });
    scores();
    let names = [];
    const changed = () => {
      const i = index();
      line.textContent = trials[i].command;
      score(i);
      names.forEach((name, other) => name.setAttribute("aria-pressed", String(other === i)));
      return viewer.show(i);
    };
    byId("command").append(make("p", { class: "quiet" }, `Run this in the directory in which the trials were made. With --rows ${row}..${row + 1} it makes this slice alone.`), line, copyButton("Copy the command", () => line.textContent));
    byId("trials").append(
      make("p", { class: "quiet" }, `The same ${part.width} x ${part.height} pixels of every slice at full resolution, with one window. Move the slider with the arrow keys${axes ? " and look for the sharpest edges: a wrong axis doubles them or bends them into arcs" : " and compare edges, noise and rings"}.`),
      viewer.element);
    const sliders = varied.map((flag, which) => slider(which ? "trials-second" : "trials", axes ? "Axis" : flag.flag, counts[which], at[which], (i) => saidOf(which, i), (i) => {
      at[which] = i;
      return changed();
    }));
    const choose = (i) => sliders.forEach(({ choose: move }, which) => move(which ? Math.floor(i / counts[0]) : i % counts[0]));
    const go = (label, i) => make("button", { type: "button", click: () => choose(i) }, label);
    byId("trials").append(...sliders.map((one) => one.row),
      make("div", { class: "controls" }, near === null ? null : go(`Next to ${certain.method} (${said(near)})`, near), best === null ? null : go(`Lowest score (${said(best)})`, best)),
      make("div", { class: "controls" }, ...grey.controls(unit)),
      make("div", { class: "controls" }, ...viewer.tools()), viewer.help());
    // a table of two flags has a column for each value of the first
    byId("tiles").style.gridTemplateColumns = varied.length > 1 ? `repeat(${counts[0]}, minmax(11rem, 1fr))` : "repeat(auto-fill, minmax(min(100%, 14rem), 1fr))";
    byId("tiles-said").textContent = "Window, zoom and place are those of the slice above: what changes in one changes in all. Press a name to show its slice and its command there.";
    const tiles = trials.map((trial, i) => tile(i, common, choose));
    names = tiles.map((one) => one.name);
    await Promise.all([changed(), ...tiles.map((one) => one.shown)]);
  }

  (async () => {
    head();
    await slices();
    if (axes) {
      byId("axis-section").hidden = false;
      byId("axis").append(axisSearch(search, null));
      if (scored) byId("axis").append(make("p", { class: "quiet" }, "The method sweep is the score of the trial slices above."));
    }
    document.body.dataset.ready = "yes";
  })();
})();
