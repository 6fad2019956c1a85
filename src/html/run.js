// The page about a run.

(() => {
  const { scan, unit, pixel, jobs } = DATA;
  const record = DATA.record;

  /** Length of a pixel that stands for so many of a slice. */
  const pixelLength = (by) => (pixel ? { across: pixel.size * by, unit: pixel.unit } : { across: by, unit: "pixels" });
  /** First to last of so many, from a first one. */
  const span = (first, by, end) => (by === 1 ? `${first}` : `${first} to ${Math.min(first + by, end) - 1}`);
  const mean = (columns, rows) => (columns * rows === 1 ? "" : "mean of ");

  function head() {
    byId("title").textContent = `Reconstruction of ${DATA.name}`;
    const slices = scan ? `${several(scan.slices[1], "slice")} from ${several(scan.projections, "projection")}` : "";
    byId("subtitle").textContent = [slices, jobs.map((job) => job.started).sort()[0]].filter(Boolean).join(", ");
    byId("footer").textContent = `Written by fbp ${DATA.program}. This file is self-contained: it needs no network, and you can send it to others.`;
  }

  function notes() {
    const all = [...new Set(jobs.flatMap((job) => job.notes ?? []))];
    for (const job of jobs.filter((job) => job.state !== "done")) all.unshift(`warning: ${jobName(job)}: ${job.state}`);
    if (DATA.missing) all.push(`note: no sinogram and no axis search on this page: ${DATA.missing}`);
    all.sort((a, b) => b.startsWith("warning") - a.startsWith("warning"));
    for (const text of all) {
      const [level, ...rest] = text.split(": ");
      byId("notes").append(make("li", { class: level }, make("strong", {}, level === "warning" ? "Warning: " : ""), flagged(rest.join(": "))));
    }
    byId("problems").hidden = all.length === 0;
  }

  /** A text with its flags set as code. */
  function flagged(text) {
    const parts = text.split(/((?<![\w-])--[a-z][\w-]*(?:[ =][A-Z0-9][A-Z0-9,.:]*)?)/);
    return make("span", {}, ...parts.map((part) => (part.startsWith("--") ? make("code", {}, part) : part)));
  }

  const jobName = (job) => (job.shard ? `shard ${job.shard}` : "run");

  let grey = null;
  let sliceViewer = null;
  /** Row and column of the sections in pixels of the shown slices, where they are not those in the middle. */
  const cut = { row: null, column: null };

  /** Where the sections cross the slice, once they were moved. */
  function drawCuts(context, at) {
    context.setLineDash([]);
    context.strokeStyle = "#35c9ff";
    context.lineWidth /= 2;
    const { width, height } = sliceViewer.image;
    const line = (from, to) => {
      context.beginPath();
      context.moveTo(...at(...from));
      context.lineTo(...at(...to));
      context.stroke();
    };
    if (cut.row !== null) line([0, cut.row + 0.5], [width, cut.row + 0.5]);
    if (cut.column !== null) line([cut.column + 0.5, 0], [cut.column + 0.5, height]);
    context.lineWidth *= 2;
  }

  async function slices() {
    const { numbers, images, reduction, region, count: all } = DATA.slices;
    const { columns, rows } = reduction;
    const middle = Math.floor(numbers.length / 2);
    const share = DATA.histogram?.percentiles;
    const range = share && share["99.5"] > share["0.5"] ? [share["0.5"], share["99.5"]] : usualRange(await unpack(images[middle]));
    grey = new GreyWindow(...range);
    const viewer = new Viewer({
      name: "slices", images, window: grey, unit, pixel: pixelLength(columns), draw: drawCuts,
      label: "Slice. Arrow keys select the pixel whose value is shown; with Shift, they move by ten pixels.",
      place: (x, y) => `${mean(columns, rows)}x ${span(region.x + x * columns, columns, region.x + region.width)}, y ${span(region.y + y * rows, rows, region.y + region.height)}`,
    });
    sliceViewer = viewer;
    const said = (i) => `slice ${numbers[i]}`;
    const size = `${region.width} x ${region.height} pixels`;
    const shown = numbers.length === all ? several(all, "slice") : `${count(numbers.length)} of ${several(all, "slice")}, evenly spaced,`;
    const shrunk = columns === 1 ? "" : `, shown as means of ${columns} x ${rows} pixels`;
    const files = columns > 1 || numbers.length < all ? " The files contain all pixels of all slices." : "";
    byId("shown").textContent = `${shown} of ${size}${shrunk}.${files}`;
    const profile = new Profile(viewer, { x: region.x, y: region.y, by: columns });
    const tools = viewer.tools(profile);
    byId("slices").append(
      viewer.element, viewer.slider("slices", "Slice", middle, said),
      make("div", { class: "controls" }, ...grey.controls(unit)),
      make("div", { class: "controls" }, ...tools), viewer.help(), profile.element);
  }

  /** A slice by the method of the run, and by filtered back projection; they share the window of the slices above. */
  function filtered() {
    if (!DATA.filtered) return;
    const { slice, method, image, missing } = DATA.filtered;
    byId("filtered-section").hidden = false;
    if (missing) {
      byId("filtered").append(make("p", {}, `Not on this page: ${missing}`));
      return;
    }
    const { numbers, images, region, reduction: { columns: by } } = DATA.slices;
    const viewer = (name, of, what) => {
      const shown = new Viewer({
        name, images: [of], window: grey, unit, pixel: pixelLength(by),
        label: `Slice ${slice} by ${what}. Arrow keys select the pixel whose value is shown.`,
        place: (x, y) => `${mean(by, by)}x ${span(region.x + x * by, by, region.x + region.width)}, y ${span(region.y + y * by, by, region.y + region.height)}`,
      });
      shown.show(0);
      return make("figure", {}, make("figcaption", {}, make("h3", {}, what)), shown.element);
    };
    byId("filtered").append(
      make("p", { class: "quiet" }, `Slice ${slice}, with the brightness and contrast of the slices above.`),
      make("div", { class: "columns" },
        viewer("solved", images[numbers.indexOf(slice)], method),
        viewer("filtered-slice", image, "filtered back projection")));
  }

  /** A section through the slices on this page, at a row or a column of their pixels. */
  async function sectionOf(name, position) {
    const { images } = DATA.slices;
    const { width, height, step } = images[0];
    const along = name === "xz" ? width : height;
    const values = new Float32Array(along * images.length);
    for (const [number, image] of images.entries()) {
      const slice = await unpack(image);
      for (let i = 0; i < along; i += 1) values[number * along + i] = name === "xz" ? slice[position * width + i] : slice[i * width + position];
    }
    return { width: along, height: images.length, values, step };
  }

  function sections() {
    const { sections: cuts, slices: shown } = DATA;
    const [first, , step] = scan.slices;
    const { region, numbers, images, reduction: { columns: by } } = shown;
    const kinds = [
      { name: "xz", line: "row", axis: "x", across: "y", middle: cuts.row, start: region.x, width: region.width, from: region.y, count: images[0].height, end: region.y + region.height },
      { name: "yz", line: "column", axis: "y", across: "x", middle: cuts.column, start: region.y, width: region.height, from: region.x, count: images[0].width, end: region.x + region.width },
    ];
    for (const { name, line, axis, across, middle, start, width, from, count: positions, end } of kinds) {
      const { image, reduction: { columns, rows } } = cuts[name];
      const inMiddle = Math.floor((middle - from) / by);
      let moved = null;
      const viewer = new Viewer({
        name, images: [image], window: grey, unit, pixel: pixelLength(columns),
        label: "Section across all slices.",
        // slices that were left out have their height, too
        aspect: (rows * step) / columns,
        place: (x, y) => {
          if (moved !== null) return `${mean(by, by)}${axis} ${span(start + x * by, by, start + width)}, ${across} ${span(from + moved * by, by, end)}, slice ${numbers[y]}`;
          return `${mean(columns, rows)}${axis} ${span(start + x * columns, columns, start + width)}, slice ${rows === 1 ? first + y * step : `${first + y * rows * step} to ${first + (Math.min((y + 1) * rows, shown.count) - 1) * step}`}`;
        },
      });
      const apart = numbers.length > 1 ? (numbers[numbers.length - 1] - numbers[0]) / (numbers.length - 1) : step;
      let latest = inMiddle;
      const choose = async (position) => {
        latest = position;
        const wanted = position === inMiddle ? null : position;
        const section = wanted === null ? image : await sectionOf(name, wanted);
        // another may have been asked for in the meantime
        if (latest !== position) return;
        moved = wanted;
        cut[line] = wanted;
        viewer.images = [section];
        viewer.aspect = wanted === null ? (rows * step) / columns : apart / by;
        viewer.pixel = pixelLength(wanted === null ? columns : by);
        viewer.cursor = null;
        await viewer.show(0);
        viewer.canvas.setAttribute("aria-label", `Section across all slices at ${said(position)}. Arrow keys select the pixel whose value is shown.`);
        sliceViewer.lay();
      };
      const said = (position) => (position === inMiddle ? `${across} ${middle}` : `${across} ${span(from + position * by, by, end)}`);
      const { row } = slider(name, line === "row" ? "Row" : "Column", positions, inMiddle, said, choose);
      const note = images.length < shown.count ? `. Away from the middle, of the ${count(images.length)} slices on this page` : "";
      byId("sections").append(make("figure", {}, make("figcaption", {}, make("h3", {}, `${name} section`), `Across all slices at one ${line}, first slice at the top${note}.`), viewer.element, row));
    }
  }

  /** The fields that projections were divided by. */
  function fields() {
    if (!DATA.fields) return;
    byId("fields-section").hidden = false;
    for (const [number, { name, frames, image, reduction: { columns, rows } }] of DATA.fields.entries()) {
      const viewer = new Viewer({
        name: `field-${number}`, images: [image], window: null, unit: "counts", tall: 0.35, aspect: rows / columns,
        label: `${name}. Arrow keys select the pixel whose value is shown.`,
        place: (x, y) => `${mean(columns, rows)}bin ${columns === 1 ? x : `${x * columns} and on`}, row ${rows === 1 ? y : `${y * rows} and on`}`,
      });
      byId("fields").append(make("figure", {}, make("figcaption", {}, make("h3", {}, name), frames === 1 ? "One frame" : `From ${several(frames, "frame")}`), viewer.element));
      viewer.show(0);
    }
  }

  function histogram() {
    const { counts, first_edge: edge, bin_width: width, percentiles, ...rest } = DATA.histogram;
    if (!counts.length) {
      byId("histogram").append(make("p", {}, "There are no finite values."));
      return;
    }
    // so many bins as can be seen
    const by = Math.ceil(counts.length / 512);
    const bars = [];
    for (let i = 0; i < counts.length; i += by) bars.push([edge + (i + by / 2) * width, counts.slice(i, i + by).reduce((sum, n) => sum + n, 0)]);
    const marks = [["0.5", "0.5 %"], ["99.5", "99.5 %"]].map(([share, text]) => ({ x: percentiles[share], text }));
    const facts = [["Values", count(rest.count)], ["Not finite", count(rest.non_finite)], ["Minimum", short(rest.minimum, 6)],
      ["Maximum", short(rest.maximum, 6)], ["Mean", short(rest.mean, 6)], ["Standard deviation", short(rest.standard_deviation, 6)]];
    const shares = Object.entries(percentiles).map(([share, value]) => [Number(share), value]).sort((a, b) => a[0] - b[0]);
    byId("histogram").append(make("div", { class: "columns" },
      make("figure", {}, lineChart({
        points: bars, marks, area: true, log: true, xTitle: `attenuation ${unit}`, yTitle: "pixels",
        label: `Histogram of ${count(rest.count)} values from ${short(rest.minimum)} to ${short(rest.maximum)} ${unit}, counts on a logarithmic scale; half of the values are below ${short(percentiles["50"])}.`,
      }), asNumbers(dataTable("Percentiles", ["percent", unit], shares))),
      factTable(facts)));
  }

  /** What two half scans have in common, ring by ring, and the noise in air. */
  function resolution() {
    for (const job of jobs.filter((job) => job.resolution)) {
      const { slice, side, half_bit: halfBit, one_seventh: seventh, air, unit: lengthUnit, correlation, threshold } = job.resolution;
      byId("resolution-section").hidden = false;
      if (jobs.length > 1) byId("resolution").append(make("h3", {}, jobName(job)));
      const frequency = (i) => (i + 1) / side;
      const curve = (values) => values.slice(1).map((value, i) => [frequency(i), value]);
      const said = ({ verdict, pixels, length }) => {
        if (verdict === "nothing") return "nothing: the half scans have nothing in common";
        const size = `${short(pixels, 3)} pixels${length === undefined || length === null ? "" : ` (${short(length, 3)} ${lengthUnit})`}`;
        return verdict === "ok" ? size : `${size}, the limit of the pixels`;
      };
      const marks = [[halfBit, "half-bit"], [seventh, "1/7"]].filter(([found]) => found.verdict === "ok").map(([found, text]) => ({ x: 1 / found.pixels, text }));
      const points = curve(correlation);
      const flat = [points[0], points[points.length - 1]].map(([x]) => [x, 1 / 7]);
      byId("resolution").append(
        make("p", { class: "quiet" }, `Fourier ring correlation of two half scans of slice ${slice}, from the even and the odd projections. Dashed: the half-bit threshold, and 1/7. Streaks of few projections differ between the half scans, so that they make the resolution look worse; rings are in both, and count as detail.`),
        make("div", { class: "columns" },
          make("figure", {}, lineChart({
            points, marks, limits: [curve(threshold), flat], xTitle: "periods per pixel", yTitle: "correlation",
            label: `Fourier ring correlation of two half scans of slice ${slice}. Resolution by half-bit: ${said(halfBit)}; by 1/7: ${said(seventh)}.`,
          }), asNumbers(dataTable("Fourier ring correlation", ["periods per pixel", "correlation", "half-bit threshold"], thinned(points.map(([x, y], i) => [x, y, threshold[i + 1]]), 128)))),
          factTable([
            ["Resolution, half-bit", said(halfBit)],
            ["Resolution, 1/7", said(seventh)],
            ["Noise in air", air ? `${short(air.standard_deviation, 3)} ${unit}` : "no air was found"],
            ["Mean in air", air ? `${short(air.mean, 3)} ${unit}` : ""],
            ["Air", air ? `${short(100 * air.share, 2)} % of the field of view` : ""],
          ])));
    }
  }

  async function sinogram() {
    if (!DATA.sinogram) {
      byId("sinogram").append(make("p", {}, `Not on this page: ${DATA.missing}`));
      return;
    }
    const { image, reduction: { columns, rows }, slice, axis, bins, projections } = DATA.sinogram;
    const drawAxis = (by) => (context, at) => {
      const rows = axis.length;
      context.beginPath();
      // the centre of bin 0 is half a bin from the edge
      axis.forEach((bin, row) => {
        context.lineTo(...at((bin + 0.5) / by, row));
        context.lineTo(...at((bin + 0.5) / by, Math.min(row + 1, rows)));
      });
      context.strokeStyle = "#ff7a1a";
      context.setLineDash([4 * context.lineWidth, 2.5 * context.lineWidth]);
      context.stroke();
      context.setLineDash([]);
    };
    const viewer = (name, image, { columns: by, rows: of }, width, what, draw) => new Viewer({
      name, images: [image], window: null, unit: "(line integral)", draw, tall: 0.6,
      label: `Sinogram of slice ${slice}${what}`,
      place: (x, y) => `${mean(by, of)}bin ${span(x * by, by, width)}, projection ${span(y * of, of, projections)}`,
    });
    const found = scan.axis.method ? `found by ${scan.axis.method}, uncertainty ${short(scan.axis.uncertainty, 2)} bins` : "as given";
    byId("sinogram").append(make("p", {}, `Slice ${slice} as passed to the filter: ${several(projections, "projection")} downwards, ${several(bins, "bin")} across. The dashed line is the axis, `,
      make("strong", {}, `${short(scan.axis.value, 7)} bins`), `, ${found}.`));
    const after = viewer("sinogram", image, { columns, rows }, bins, `, with the rotation axis at ${short(axis[0], 7)} bins drawn in.`, drawAxis(columns));
    const { seen } = DATA;
    if (!seen) {
      byId("sinogram").append(after.element);
      after.show(0);
      return;
    }
    // one window for both
    const before = viewer("seen", seen.image, seen.reduction, seen.bins, " before stripes were removed.", null);
    const shared = new GreyWindow(...usualRange(await unpack(seen.image)));
    const figure = (title, shown) => make("figure", {}, make("figcaption", {}, make("h3", {}, title)), shown.element);
    byId("sinogram").append(make("div", { class: "columns" }, figure("With its stripes", before), figure("After stripe removal", after)));
    for (const shown of [before, after]) {
      shown.use(shared);
      shown.show(0);
    }
  }

  function axis() {
    if (DATA.search) byId("axis").append(axisSearch(DATA.search, scan.axis.value));
    else byId("axis").append(make("p", {}, `Not on this page: ${DATA.missing}`));
  }

  const STAGES = [["reading", "Reading"], ["uploading", "Uploading"], ["correcting", "Correcting sinograms on the device"], ["computing", "Computing"], ["downloading", "Downloading"], ["writing", "Writing"]];

  /** Start, then all stages side by side: how long each was busy. */
  function times() {
    for (const job of jobs) {
      const { seconds, stages = {}, busy = {}, limit } = job;
      if (jobs.length > 1) byId("time").append(make("h3", {}, jobName(job)));
      if (!seconds || stages.start === undefined) {
        byId("time").append(make("p", {}, `No times: ${job.state}.`));
        continue;
      }
      const total = Math.max(seconds, stages.start);
      const streaming = total - stages.start;
      const bar = (kind, from, length) => make("div", { class: `bar ${kind}`, style: `left:${(100 * from) / total}%;width:${Math.max((100 * length) / total, 0.2)}%` });
      const row = (name, kind, from, length, said) => make("div", { class: "line" }, make("span", {}, name), make("div", { class: "track", "aria-hidden": "true" }, bar(kind, from, length)), make("span", { class: "said" }, said));
      const lines = [row("Starting", "before", 0, stages.start, time(stages.start))];
      for (const [key, name] of STAGES) {
        if (key === "correcting" && !stages.steps) continue;
        const share = Math.min(busy[key] ?? 0, 1);
        lines.push(row(name, key === limit ? "limits" : "", stages.start, share * streaming, `${time(share * streaming)}, ${Math.round(100 * share)} %${key === limit ? ", limits" : ""}`));
      }
      const detail = [["start", "starting"], ["read", "reading and correcting"], ["upload", "uploading"], ["steps", "steps on the device"], ["filter", "filter"], ["back_projection", "back projection"], ["solver", "least squares"], ["finish", "counting and encoding"], ["download", "downloading"], ["write", "writing"]];
      byId("time").append(
        make("p", {}, `${time(seconds)} in total. After ${time(stages.start)} to start, the stages ran in parallel; bars show how long each was busy. ${limit ? `The run could not be faster than its ${limit}.` : ""}`),
        ...lines, asNumbers(dataTable("Seconds, summed over all devices", ["stage", "seconds"], detail.map(([key, name]) => [name, stages[key] ?? 0]))));
    }
  }

  function replaced(job) {
    const { replaced: r, clipped } = job;
    if (!r) return null;
    const parts = [[r.non_positive, "transmissions at or below 0"], [r.dead, "where the flat field is not above the dark field"], [r.non_finite, "not finite or too large"], [clipped ?? 0, "pixels clipped when they were written"]];
    return parts.map(([number, what]) => `${count(number)} ${what}`).join("; ");
  }

  function facts() {
    const [first, number, step] = scan.slices;
    const { region, size } = DATA.slices ? { region: DATA.slices.region, size: scan.size } : { region: null, size: scan.size };
    const account = Object.fromEntries(DATA.account ?? []);
    const turned = `${short(scan.angles[0], 6)} to ${short(scan.angles[1], 6)} degrees`;
    const rows = [
      ["Scan", DATA.name],
      ["Output", make("code", {}, DATA.output)],
      ["Projections", count(scan.projections)],
      ["Angles", turned],
      ["Bins", count(scan.bins)],
      ...Object.entries(account),
      ["Rotation axis", `${short(scan.axis.value, 8)} bins${scan.axis.method ? `, found by ${scan.axis.method}` : ", given"}`],
      ["Slices", `${count(number)}, from ${first} to ${first + (number - 1) * step}${step > 1 ? ` in steps of ${step}` : ""}`],
      ["Size of a slice", region ? `${region.width} x ${region.height} pixels${region.width === size && region.height === size ? "" : `, from x ${region.x}, y ${region.y} of ${size} x ${size}`}` : ""],
      ["Pixel size", pixel ? `${short(pixel.size, 7)} ${pixel.unit}` : "not given (--pixel-size)"],
      ["Values", `attenuation ${unit}, stored as ${DATA.dtype}`],
      ...jobs.flatMap((job) => {
        const name = jobs.length > 1 ? ` (${jobName(job)})` : "";
        return [
          [`Started${name}`, `${job.started} on ${job.host}, ${job.state}`],
          ...job.devices.map((d) => [`Device${name}`, `${d.device}, driver ${d.driver}, profile ${d.profile}${d.slices === undefined ? "" : `: ${count(d.slices)} slices`}${d.gu_per_s ? `, back projection ${short(d.gu_per_s, 3)} GU/s` : ""}`]),
          [`Replaced values${name}`, replaced(job)],
        ];
      }),
      ["Version", `fbp ${DATA.version}`],
      ["Run key", make("code", {}, DATA.run)],
    ];
    const name = DATA.record_name ?? "fbp-run.toml";
    const save = make("a", { href: `data:application/toml;charset=utf-8,${encodeURIComponent(record)}`, download: name }, `Save as ${name}`);
    byId("facts").append(factTable(rows));
    byId("run-file").append(
      make("p", {}, "To reproduce these slices: ", make("code", {}, `fbp reconstruct --config ${name} --output DIR`)),
      make("pre", { id: "record", tabindex: 0, role: "region", "aria-label": "Text of the run file" }, record),
      make("div", { class: "controls" }, copyButton("Copy the run file", () => record), save));
  }

  /** The run in sentences. */
  function methods() {
    if (!DATA.methods) return;
    byId("methods-section").hidden = false;
    byId("methods").append(
      make("p", { class: "quiet" }, "From the record of the run. Add what fbp does not know: the beamline, the energy, the exposure."),
      make("pre", { id: "methods-text", class: "prose", tabindex: 0, role: "region", "aria-label": "Methods" }, DATA.methods),
      copyButton("Copy the text", () => DATA.methods));
  }

  (async () => {
    head();
    notes();
    await slices();
    sections();
    filtered();
    fields();
    histogram();
    resolution();
    await sinogram();
    axis();
    times();
    facts();
    methods();
    document.body.dataset.ready = "yes";
  })();
})();
