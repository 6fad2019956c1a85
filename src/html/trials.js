// The page of trial slices: which axis is the sharpest?

(() => {
  const { trials, part, unit, pixel, row, search, command } = DATA;
  const images = trials.map((trial) => trial.image);
  const best = trials.reduce((lowest, trial, i) => (trial.score < trials[lowest].score ? i : lowest), 0);
  const said = (i) => `${trials[i].center.toFixed(2)} bins`;

  function head() {
    byId("subtitle").textContent = `Row ${row}, ${trials.length} positions from ${said(0)} to ${said(trials.length - 1)}`;
    byId("footer").textContent = `Written by fbp ${DATA.program}. This file is self-contained: it needs no network, and you can send it to others.`;
  }

  const line = make("pre", { id: "line", tabindex: 0, role: "region", "aria-label": "Command" });
  const text = (i) => `${command} --center ${Number(trials[i].center.toFixed(4))} --output slices/`;

  function score(i) {
    const marks = search.methods.filter((found) => found.verdict === "ok").map((found) => ({ x: found.value, text: found.method }));
    const chart = trials.length > 1 ? lineChart({
      points: trials.map((trial) => [trial.center, trial.score]), dots: true, here: trials[i].center, marks,
      size: CHART.medium, xTitle: "axis in bins", yTitle: "negative values",
      label: `Fraction of negative values in each trial slice. It is lowest, and so best by this score, at ${said(best)}; the slice shown, at ${said(i)}, has ${short(trials[i].score, 3)}.`,
    }) : null;
    byId("score-chart").replaceChildren(...[chart].filter(Boolean));
  }

  async function slices() {
    const middle = Math.floor(trials.length / 2);
    const grey = new GreyWindow(...usualRange(await unpack(images[middle])));
    const viewer = new Viewer({
      name: "trials", images, window: grey, unit, smooth: false,
      pixel: pixel ? { across: pixel.size, unit: pixel.unit } : { across: 1, unit: "pixels" },
      label: "Trial slice. Arrow keys select the pixel whose value is shown.",
      place: (x, y) => `x ${part.left + x}, y ${part.top + y} from the middle`,
    });
    const changed = (i) => {
      line.textContent = text(i);
      byId("trials-score").textContent = `${said(i)}: ${short(trials[i].score, 4)}${i === best ? ", the lowest" : ""}`;
      score(i);
    };
    byId("score").append(
      make("p", { class: "quiet" }, "The fraction of negative values in the whole slice. A wrong axis causes more of them, so the lowest score is often the best axis, but judge by eye. Lines mark positions of which a search method is certain."),
      make("p", {}, make("output", { id: "trials-score" })),
      make("div", { id: "score-chart" }),
      asNumbers(dataTable("Scores", ["axis in bins", "score"], trials.map((trial) => [trial.center, trial.score]))));
    byId("command").append(make("p", { class: "quiet" }, "Run this in the directory in which the trials were made."), line, copyButton("Copy the command", () => line.textContent));
    const side = `${part.side} x ${part.side} pixels`;
    byId("trials").append(
      make("p", { class: "quiet" }, `The same ${side} of every slice at full resolution, chosen for the most structure. Move the slider with the arrow keys and look for the sharpest edges: a wrong axis doubles them or bends them into arcs.`),
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
