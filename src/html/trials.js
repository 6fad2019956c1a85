// The page of trial slices: which axis is the sharpest?

(() => {
  const { trials, part, unit, pixel, row, search, command } = DATA;
  const images = trials.map((trial) => trial.image);
  const best = trials.reduce((lowest, trial, i) => (trial.score < trials[lowest].score ? i : lowest), 0);
  const said = (i) => `${trials[i].center.toFixed(2)} bins`;

  function head() {
    byId("subtitle").textContent = `Row ${row}, ${trials.length} positions from ${said(0)} to ${said(trials.length - 1)}`;
    byId("footer").textContent = `Written by fbp ${DATA.program}. This file is complete in itself: it needs no network and can be passed on.`;
  }

  const line = make("pre", { id: "line", tabindex: 0, role: "region", "aria-label": "Command" });
  const text = (i) => `${command} --center ${Number(trials[i].center.toFixed(4))} --output slices/`;

  function score(i) {
    const marks = search.methods.filter((found) => found.verdict === "ok").map((found) => ({ x: found.value, text: found.method }));
    const chart = trials.length > 1 ? lineChart({
      points: trials.map((trial) => [trial.center, trial.score]), dots: true, here: trials[i].center, marks,
      size: CHART.medium, xTitle: "axis in bins", yTitle: "negative values",
      label: `Share of negative values in each trial slice. Lowest, and so the best by this score, at ${said(best)}; the slice that is shown, at ${said(i)}, has ${short(trials[i].score, 3)}.`,
    }) : null;
    byId("score-chart").replaceChildren(...[chart].filter(Boolean));
  }

  async function slices() {
    const middle = Math.floor(trials.length / 2);
    const grey = new GreyWindow(...usualRange(await unpack(images[middle])));
    const viewer = new Viewer({
      name: "trials", images, window: grey, unit, smooth: false,
      pixel: pixel ? { across: pixel.size, unit: pixel.unit } : { across: 1, unit: "pixels" },
      label: "Trial slice. Arrow keys move the place whose value is read.",
      place: (x, y) => `x ${part.left + x}, y ${part.top + y} from the middle`,
    });
    const changed = (i) => {
      line.textContent = text(i);
      byId("trials-score").textContent = `${said(i)}: ${short(trials[i].score, 4)}${i === best ? ", the lowest" : ""}`;
      score(i);
    };
    byId("score").append(
      make("p", { class: "quiet" }, "The share of negative values in the whole slice. A wrong axis makes more of them, so the lowest score is often the best axis, but the eye decides. Lines are positions that a method of the search is sure of."),
      make("p", {}, make("output", { id: "trials-score" })),
      make("div", { id: "score-chart" }),
      asNumbers(dataTable("Scores", ["axis in bins", "score"], trials.map((trial) => [trial.center, trial.score]))));
    byId("command").append(make("p", { class: "quiet" }, "In the directory where the trials were made."), line, copyButton("Copy the command", () => line.textContent));
    const side = `${part.side} x ${part.side} pixels`;
    byId("trials").append(
      make("p", { class: "quiet" }, `The same ${side} of every slice at full resolution, those with the most structure. Move the slider with the arrow keys and look for the sharpest edges: a wrong axis doubles them or bends them to arcs.`),
      viewer.element);
    const slider = viewer.slider("trials", "Axis", middle, said, changed);
    const go = (label, index) => make("button", { type: "button", click: () => viewer.choose(index) }, label);
    byId("trials").append(slider, make("div", { class: "controls" }, go(`Lowest score (${said(best)})`, best), ...grey.controls(unit), viewer.zoomControl()));
  }

  (async () => {
    head();
    await slices();
    byId("axis").append(axisSearch(search, null));
    document.body.dataset.ready = "yes";
  })();
})();
