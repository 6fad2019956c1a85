// The page of a scan that failed.

(() => {
  const { name, input, error, doubts, contents, picture, run } = DATA;
  const block = (text, label) => make("pre", { tabindex: 0, role: "region", "aria-label": label }, text);
  byId("title").textContent = `${name}: failed`;
  byId("subtitle").textContent = input;
  byId("error").append(
    make("p", { class: "notice" }, make("strong", {}, `Exit code ${error.exit_code}: `), error.message),
    make("ul", { class: "notes" }, ...doubts.map((doubt) => make("li", { class: "warning" }, `${doubt.what}; ${doubt.advice}`))),
  );
  byId("input").append(block(contents, "What the input has"));
  if (picture) {
    byId("input").append(make("figure", {}, make("figcaption", {}, picture.title),
      make("img", { src: `data:image/png;base64,${picture.png}`, alt: picture.title, style: "max-width: 100%" })));
  }
  byId("run").append(block(run, "Run file"), copyButton("Copy the run file", () => run));
  byId("footer").textContent = `Written by ${DATA.software}. This file is self-contained: it needs no network, and you can send it to others.`;
  document.body.dataset.ready = "yes";
})();
