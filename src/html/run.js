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
    const folder = DATA.output.split("/").filter(Boolean).pop() ?? DATA.output;
    byId("title").textContent = `Reconstruction ${folder}`;
    const slices = scan ? `${count(scan.slices[1])} slices from ${count(scan.projections)} projections` : "";
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

  async function slices() {
    const { numbers, images, reduction, region, count: all } = DATA.slices;
    const { columns, rows } = reduction;
    const middle = Math.floor(numbers.length / 2);
    const share = DATA.histogram?.percentiles;
    const range = share && share["99.5"] > share["0.5"] ? [share["0.5"], share["99.5"]] : usualRange(await unpack(images[middle]));
    grey = new GreyWindow(...range);
    const viewer = new Viewer({
      name: "slices", images, window: grey, unit, pixel: pixelLength(columns),
      label: "Slice. Arrow keys select the pixel whose value is shown; with Shift, they move by ten pixels.",
      place: (x, y) => `${mean(columns, rows)}x ${span(region.x + x * columns, columns, region.x + region.width)}, y ${span(region.y + y * rows, rows, region.y + region.height)}`,
    });
    const said = (i) => `slice ${numbers[i]}`;
    const size = `${region.width} x ${region.height} pixels`;
    const shown = numbers.length === all ? `All ${count(all)} slices` : `${numbers.length} of ${count(all)} slices, evenly spaced`;
    const shrunk = columns === 1 ? `of ${size}, every pixel` : `of ${size}, averaged over ${columns} x ${rows} pixels`;
    byId("shown").textContent = `${shown}, ${shrunk}. The page stays below 10 MB; the files contain all pixels.`;
    byId("slices").append(
      viewer.element, viewer.slider("slices", "Slice", middle, said),
      make("div", { class: "controls" }, ...grey.controls(unit), viewer.zoomControl()));
  }

  function sections() {
    const { sections: cuts, slices: shown } = DATA;
    const [first, , step] = scan.slices;
    const { region } = shown;
    const kinds = [
      ["xz", cuts.xz, `Across all slices at row ${cuts.row}`, region.x, region.width, "x"],
      ["yz", cuts.yz, `Across all slices at column ${cuts.column}`, region.y, region.height, "y"],
    ];
    for (const [name, { image, reduction: { columns, rows } }, title, start, width, axis] of kinds) {
      const viewer = new Viewer({
        name, images: [image], window: grey, unit, pixel: pixelLength(columns),
        label: `${title}. Arrow keys select the pixel whose value is shown.`,
        // slices that were left out have their height, too
        aspect: (rows * step) / columns,
        place: (x, y) => `${mean(columns, rows)}${axis} ${span(start + x * columns, columns, start + width)}, slice ${rows === 1 ? first + y * step : `${first + y * rows * step} to ${first + (Math.min((y + 1) * rows, shown.count) - 1) * step}`}`,
      });
      byId("sections").append(make("figure", {}, make("figcaption", {}, make("h3", {}, `${name} section`), `${title}, first slice at the top`), viewer.element));
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

  function sinogram() {
    if (!DATA.sinogram) {
      byId("sinogram").append(make("p", {}, `Not on this page: ${DATA.missing}`));
      return;
    }
    const { image, reduction: { columns, rows }, slice, axis, bins, projections } = DATA.sinogram;
    const drawAxis = (context, [across]) => {
      context.beginPath();
      // the centre of bin 0 is half a bin from the edge
      axis.forEach((at, row) => {
        context.lineTo((at + 0.5) / columns, row);
        context.lineTo((at + 0.5) / columns, row + 1);
      });
      context.lineWidth = 2 / across;
      context.strokeStyle = "#ff7a1a";
      context.setLineDash([8 / across, 5 / across]);
      context.stroke();
      context.setLineDash([]);
    };
    const viewer = new Viewer({
      name: "sinogram", images: [image], window: null, unit: "(line integral)", draw: drawAxis, tall: 0.6,
      label: `Sinogram of slice ${slice}, with the rotation axis at ${short(axis[0], 7)} bins drawn in.`,
      place: (x, y) => `${mean(columns, rows)}bin ${span(x * columns, columns, bins)}, projection ${span(y * rows, rows, projections)}`,
    });
    const found = scan.axis.method ? `found by ${scan.axis.method}, uncertainty ${short(scan.axis.uncertainty, 2)} bins` : "as given";
    byId("sinogram").append(make("p", {}, `Slice ${slice} as passed to the filter: ${count(projections)} projections downwards, ${count(bins)} bins across. The dashed line is the axis, `,
      make("strong", {}, `${short(scan.axis.value, 7)} bins`), `, ${found}.`), viewer.element);
    viewer.show(0);
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
      const detail = [["start", "starting"], ["read", "reading and correcting"], ["upload", "uploading"], ["steps", "steps on the device"], ["filter", "filter"], ["back_projection", "back projection"], ["finish", "counting and encoding"], ["download", "downloading"], ["write", "writing"]];
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
    const rows = [
      ["Output", make("code", {}, DATA.output)],
      ["Slices", `${count(number)}, from ${first} to ${first + (number - 1) * step}${step > 1 ? ` in steps of ${step}` : ""}`],
      ["Size of a slice", region ? `${region.width} x ${region.height} pixels${region.width === size && region.height === size ? "" : `, from x ${region.x}, y ${region.y} of ${size} x ${size}`}` : ""],
      ["Pixel", pixel ? `${short(pixel.size, 7)} ${pixel.unit}` : "size not given (--pixel-size)"],
      ["Values", `attenuation ${unit}, stored as ${DATA.dtype}`],
      ["Projections", `${count(scan.projections)}, ${short(scan.angles[0], 6)} to ${short(scan.angles[1], 6)} degrees`],
      ["Bins", count(scan.bins)],
      ["Rotation axis", `${short(scan.axis.value, 8)} bins${scan.axis.method ? `, found by ${scan.axis.method}` : ", given"}`],
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
    byId("facts").append(factTable(rows),
      make("p", { style: "margin-top:1rem" }, "To reproduce these slices: ", make("code", {}, `fbp reconstruct --config ${name} --output DIR`)),
      make("pre", { id: "record", tabindex: 0, role: "region", "aria-label": "Run file" }, record),
      make("div", { class: "controls" }, copyButton("Copy the run file", () => record), save));
  }

  (async () => {
    head();
    notes();
    await slices();
    sections();
    histogram();
    sinogram();
    axis();
    times();
    facts();
    document.body.dataset.ready = "yes";
  })();
})();
