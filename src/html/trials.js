// The page of trial slices: which axis is the sharpest?

(() => {
  const { trials, part, unit, pixel, row, search, command, score: scored } = DATA;
  const images = trials.map((trial) => trial.image);
  const best = scored ? trials.reduce((lowest, trial, i) => (trial.score < trials[lowest].score ? i : lowest), 0) : null;
  const said = (i) => `${trials[i].center.toFixed(2)} bins`;
  /** The first method that is certain of an axis among the trials, and the trial next to it. */
  const certain = search.methods.find((found) => found.verdict === "ok" && found.value >= trials[0].center && found.value <= trials[trials.length - 1].center);
  const near = certain ? trials.reduce((nearest, trial, i) => (Math.abs(trial.center - certain.value) < Math.abs(trials[nearest].center - certain.value) ? i : nearest), 0) : null;

  function head() {
    byId("title").textContent = `Rotation axis of ${DATA.name}: trial slices`;
    byId("subtitle").textContent = `Row ${row}, ${trials.length} positions from ${said(0)} to ${said(trials.length - 1)}`;
    byId("footer").textContent = `Written by fbp ${DATA.program}. This file is self-contained: it needs no network, and you can send it to others.`;
  }

  const line = make("pre", { id: "line", tabindex: 0, role: "region", "aria-label": "Command" });
  const text = (i) => `${command} --center ${Number(trials[i].center.toFixed(4))} --output slices/`;

  const unitOfScore = "per bin";

  function score(i) {
    if (!scored) return;
    byId("trials-score").textContent = `${said(i)}: ${short(trials[i].score, 4)}${i === best ? ", the lowest of the trials" : ""}`;
    if (trials.length < 2) return;
    const marks = search.methods.filter((found) => found.verdict === "ok").map((found) => ({ x: found.value, text: found.method }));
    byId("score-chart").replaceChildren(lineChart({
      points: scored.between, dots: trials.map((trial) => [trial.center, trial.score]), here: trials[i].center, marks,
      size: CHART.medium, xTitle: "axis in bins", yTitle: `score (${unitOfScore})`,
      label: `Score of every trial axis. It is lowest of the trials at ${said(best)}; the slice shown, at ${said(i)}, has ${short(trials[i].score, 4)}.`,
    }));
  }

  /** What the scores say, in the words of the search methods. */
  const SAID = {
    ok: VERDICTS.ok,
    railed: "the lowest score is at an end of the trials: widen --sweep",
    flat: "no position is much better than the others",
    ambiguous: "another position is nearly as good: compare them by eye",
    uncertain: "parts of the slice disagree: compare by eye",
  };

  function scores() {
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
      asNumbers(dataTable("Scores", ["axis in bins", `score (${unitOfScore})`], trials.map((trial) => [trial.center, trial.score]))));
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
      score(i);
    };
    scores();
    byId("command").append(make("p", { class: "quiet" }, "Run this in the directory in which the trials were made."), line, copyButton("Copy the command", () => line.textContent));
    const side = `${part.side} x ${part.side} pixels`;
    byId("trials").append(
      make("p", { class: "quiet" }, `The same ${side} of every slice at full resolution, chosen for the most structure. Move the slider with the arrow keys and look for the sharpest edges: a wrong axis doubles them or bends them into arcs.`),
      viewer.element);
    const slider = viewer.slider("trials", "Axis", middle, said, changed);
    const go = (label, index) => make("button", { type: "button", click: () => viewer.choose(index) }, label);
    byId("trials").append(slider,
      make("div", { class: "controls" }, near === null ? null : go(`Next to ${certain.method} (${said(near)})`, near), best === null ? null : go(`Lowest score (${said(best)})`, best)),
      make("div", { class: "controls" }, ...grey.controls(unit)),
      make("div", { class: "controls" }, ...viewer.tools()), viewer.help());
  }

  (async () => {
    head();
    await slices();
    byId("axis").append(axisSearch(search, null));
    if (scored) byId("axis").append(make("p", { class: "quiet" }, "The method sweep is the score of the trial slices above."));
    document.body.dataset.ready = "yes";
  })();
})();
