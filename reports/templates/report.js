"use strict";
(() => {
  const $ = (selector, root) => Array.from((root || document).querySelectorAll(selector));
  const parsed = (id) => JSON.parse(document.getElementById(id).textContent);

  // What the page holds compressed, as text.
  function unpacked(element) {
    const bytes = Uint8Array.from(atob(element.textContent), (character) => character.charCodeAt(0));
    return new TextDecoder().decode(inflated(bytes, Number(element.dataset.size)));
  }

  // The charts' script; the page's policy names it by its hash.
  function run(element) {
    const script = document.createElement("script");
    script.text = unpacked(element);
    element.replaceWith(script);
  }

  const blocks = new Map();
  function blockOf(figure) {
    if (!blocks.has(figure)) blocks.set(figure, JSON.parse(unpacked(document.getElementById(figure.dataset.block))));
    return blocks.get(figure);
  }

  // Columns back to one object a row.
  function rowsOf(columns) {
    const names = Object.keys(columns);
    const count = names.length ? columns[names[0]].length : 0;
    return Array.from({ length: count }, (_, row) => Object.fromEntries(names.map((name) => [name, columns[name][row]])));
  }

  const narrow = window.matchMedia("(max-width: 640px)");

  // The legend takes as many columns as its place has room for.
  function configured(host) {
    const config = parsed("chart-config");
    const columns = Math.max(1, Math.min(5, Math.floor((host.clientWidth - 40) / 165)));
    Object.assign(config.legend, { columns });
    if (narrow.matches) Object.assign(config.axis, { labelFontSize: 11, titleFontSize: 11 });
    return config;
  }

  // Titles of axes that hang on a choice, as the unit does on the metric.
  function titled(part, titles, chosen) {
    if (Array.isArray(part)) {
      return part.map((one) => {
        const name = typeof one === "string" && one.startsWith("$") ? one.slice(1) : "";
        return Object.hasOwn(titles, name) ? titles[name][chosen.get(name) || 0] : titled(one, titles, chosen);
      });
    }
    if (part === null || typeof part !== "object") return part;
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, titled(value, titles, chosen)]));
  }

  // `ast` runs expressions in an interpreter, so that the page's policy can forbid eval.
  async function draw(figure) {
    const block = blockOf(figure);
    const rows = rowsOf(block.columns);
    const hosts = $(".view", figure);
    const chosen = new Map($("select", figure).map((select) => [select.name, Number(select.value)]));
    (figure.drawn || []).forEach((one) => one.finalize());
    figure.drawn = [];
    for (const [at, view] of titled(block.views, block.titles, chosen).entries()) {
      const spec = { ...view, datasets: { rows: rows.map((row) => ({ ...row })) } };
      spec.params = (spec.params || []).map((p) => (chosen.has(p.name) ? { ...p, value: chosen.get(p.name) } : p));
      figure.drawn.push(await window.vegaEmbed(hosts[at], spec, {
        mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, config: configured(hosts[at]),
        tooltip: { disableDefaultStyle: true },
        logLevel: 1, // errors only: a scheme without theory leaves a layer empty, which is no reason to warn
      }));
    }
    // The place of the chart has its name and role; the marks in it have none of their own.
    $(".view svg", figure).forEach((svg) => svg.setAttribute("aria-hidden", "true"));
    figure.classList.add("drawn");
  }

  // Charts in closed sections have no width: they are drawn when their section opens.
  let busy = Promise.resolve();
  const drawable = () => (window.vegaEmbed ? $("figure[data-block]").filter((one) => !one.closest("details.section:not([open])")) : []);

  function drawAll(again) {
    busy = busy.then(async () => {
      for (const figure of drawable()) if (again || !figure.drawn) await draw(figure);
      document.documentElement.dataset.charts = "drawn";
    });
    return busy;
  }

  function wireFigure(figure) {
    $("select", figure).forEach((select) => select.addEventListener("change", () => {
      if (Object.hasOwn(blockOf(figure).titles, select.name)) return draw(figure);
      (figure.drawn || []).forEach((one) => one.view.signal(select.name, Number(select.value)).runAsync());
      return undefined;
    }));
    $("button[data-export]", figure).forEach((button) => button.addEventListener("click", () => {
      (figure.drawn || []).forEach((one, at) => save(one.view, `${figure.id}${at ? "-" + (at + 1) : ""}`, button.dataset.export));
    }));
  }

  // An exported picture stands outside the page's style sheet: its colours are written out.
  async function svgOf(view) {
    const style = getComputedStyle(document.documentElement);
    const text = await view.toSVG();
    const plain = text.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    return plain.replace(/(<svg[^>]*>)/, `$1<rect width="100%" height="100%" fill="${style.getPropertyValue("--paper").trim()}"/>`);
  }

  async function save(view, name, kind) {
    const svg = await svgOf(view);
    const url = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
    download(kind === "svg" ? url : await rasterised(url), `${name}.${kind}`);
  }

  function rasterised(url) {
    return new Promise((resolve, reject) => {
      const image = new Image();
      image.onload = () => {
        const canvas = document.createElement("canvas");
        canvas.width = 2 * image.width;
        canvas.height = 2 * image.height;
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        resolve(canvas.toDataURL("image/png"));
      };
      image.onerror = () => reject(new Error("the picture cannot be drawn"));
      image.src = url;
    });
  }

  function download(url, name) {
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
  }

  // Sorting: by a scheme's column, or back to the scenario's order by the first.
  function wireTable(table) {
    const body = table.tBodies[0];
    const headers = $("thead th", table);
    $("thead th button", table).forEach((button) => button.addEventListener("click", () => {
      const header = button.closest("th");
      const up = header.getAttribute("aria-sort") !== "ascending";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => Number(row.cells[header.cellIndex].dataset.sort);
      const rows = Array.from(body.rows).sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return up ? x - y : y - x;
      });
      body.append(...rows);
    }));
  }

  // Where scroll bars hide, nothing else says that there is more beside the last column in sight.
  function wireWide(box) {
    const note = box.previousElementSibling;
    new ResizeObserver(() => { note.hidden = box.scrollWidth <= box.clientWidth; }).observe(box);
  }

  function wireCopy(button) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copy);
      getSelection().selectAllChildren(source);
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Selected: press Ctrl+C";
      }
    });
  }

  document.documentElement.classList.add("scripted");
  $("#bundle").forEach(run);
  $("figure[data-block]").forEach(wireFigure);
  $("table.sortable").forEach(wireTable);
  $(".more + .scroll").forEach(wireWide);
  $("button[data-copy]").forEach(wireCopy);
  narrow.addEventListener("change", () => drawAll(true));
  $("details.section").forEach((one) => one.addEventListener("toggle", () => drawAll(false)));
  // A link or a search may point into a closed section.
  const reveal = () => { const at = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1))); if (at && at.closest("details")) at.closest("details").open = true; };
  window.addEventListener("hashchange", reveal);
  reveal();
  // Closed details hold most sections; paper cannot open them.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = $("details:not([open]):not(.data)");
    closed.forEach((one) => { one.open = true; });
    drawAll(false);
  });
  window.addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));
  drawAll(false);
})();
