// The comparison's own figures: surprise, cells and attention.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const passage = Array.from(data.surprise.passage || "");  // code points, as Python counts them
  const make = (tag, attributes = {}, text = "") => {
    const svg = ["svg", "rect", "text", "g"].includes(tag);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, v);
    if (text) node.textContent = text;
    return node;
  };
  const mix = (colour, s) => {
    const t = Math.min(1, Math.max(0, s));
    const part = (i) => Math.round(255 + (parseInt(colour.slice(i, i + 2), 16) - 255) * t);
    return `rgb(${part(1)},${part(3)},${part(5)})`;
  };
  const visible = (text) => text.replace(/\n/g, "⏎").replace(/ /g, "\u00a0");

  // The words of the surprise passage: what each cost every contender.
  page.tips.unshift((target, event) => {
    const word = target.closest("#surprise .w");
    if (!word) return null;
    const text = word.querySelector(".t");
    const box = text.getBoundingClientRect();
    const length = Math.max(1, Array.from(text.textContent).length);
    const at = Number(word.dataset.at) + Math.min(length - 1, Math.floor(((event.clientX - box.left) / box.width) * length));
    const table = make("table");
    for (const c of data.surprise.contenders) {
      const span = c.spans.find(([a, b]) => a <= at && at < b);
      const row = make("tr");
      const name = make("td");
      name.append(make("i", { style: `background:${c.colour}` }), c.name);
      row.append(name, make("td", {}, span ? `“${visible(passage.slice(span[0], span[1]).join(""))}”` : "–"));
      row.append(make("td", {}, span ? `${span[2].toFixed(1)} bits` : ""));
      table.append(row);
    }
    return table;
  });

  // Colour the passage by another contender.
  for (const button of document.querySelectorAll("[data-colour-by]")) {
    button.addEventListener("click", () => {
      page.choose(button);
      const { top, contenders } = data.surprise;
      const { spans, colour } = contenders[Number(button.dataset.colourBy)];
      const bits = new Array(passage.length).fill([0, -1]);
      spans.forEach(([a, b, value], k) => bits.fill([value, k], a, b));
      for (const word of document.querySelectorAll("#surprise .w")) {
        const text = word.querySelector(".t");
        const start = Number(word.dataset.at);
        const end = Number(word.dataset.end);
        const parts = [];
        for (let i = start; i < end; i++) {
          const last = parts[parts.length - 1];
          if (last && last.k === bits[i][1]) last.text += passage[i];
          else parts.push({ k: bits[i][1], value: bits[i][0], text: passage[i] });
        }
        text.replaceChildren(...parts.map((p) =>
          make("span", { style: `background:${mix(colour, (0.6 * p.value) / top)}` }, visible(p.text).replace(/\t/g, "    "))));
      }
    });
  }

  // Cells: the same words, another unit's values.
  const diverging = (v) => mix(v >= 0 ? "#d9730d" : "#2166ac", Math.abs(v));
  for (const bar of document.querySelectorAll("[data-cells]")) {
    const words = bar.parentElement.querySelectorAll(".celltext span");
    for (const button of bar.querySelectorAll("[data-trace]")) {
      button.addEventListener("click", () => {
        page.choose(button);
        data.cells[Number(bar.dataset.cells)].values[Number(button.dataset.trace)].forEach((v, i) => {
          words[i].style.background = diverging(v);
          words[i].style.color = Math.abs(v) > 0.72 ? "#fff" : "inherit";
          words[i].dataset.tip = (v >= 0 ? "+" : "") + v.toFixed(2);
        });
      });
    }
  }

  // Attention: one large map, a thumbnail a head, and the text as one token sees it.
  const drawAttention = (root, view) => {
    const n = view.tokens.length;
    const cell = 16, margin = 92;
    let row = n - 1;
    const label = (t) => { const s = visible(t); return s.length > 12 ? s.slice(0, 11) + "…" : s; };
    const show = (layer, head) => {
      const weights = view.weights[layer][head];
      const size = margin + n * cell;
      const svg = make("svg", { viewBox: `0 0 ${size} ${size}`, role: "img" });
      svg.setAttribute("aria-label", `Attention of layer ${layer + 1}, head ${head + 1}`);
      const marks = [];
      view.tokens.forEach((token, i) => {
        const at = margin + i * cell + cell / 2;
        const left = make("text", { x: margin - 6, y: at + 4, "text-anchor": "end" }, label(token));
        const top = make("text", { transform: `translate(${at + 4} ${margin - 6}) rotate(-90)` }, label(token));
        marks.push([left, top]);
        svg.append(left, top);
      });
      weights.forEach((values, q) => values.forEach((w, k) => {
        const rect = make("rect", { x: margin + k * cell, y: margin + q * cell, width: cell - 1, height: cell - 1,
          fill: mix(view.colour, 0.04 + 0.96 * Math.sqrt(w)) });
        rect.dataset.tip = `“${visible(view.tokens[q])}” looks at “${visible(view.tokens[k])}”: ${(100 * w).toFixed(0)}%`;
        rect.addEventListener("pointerenter", () => read(q));
        svg.append(rect);
      }));
      const read = (q) => {
        row = q;
        marks.forEach(([left], i) => left.classList.toggle("on", i === q));
        const parts = view.tokens.slice(0, q + 1).map((token, k) => make("span",
          { style: `background:${mix(view.colour, 0.85 * Math.sqrt(weights[q][k]))};padding:2px 0` }, token));
        const asked = make("b", {}, " ← looks back from here");
        root.querySelector(".reads").replaceChildren(...parts, asked);
      };
      read(Math.min(row, n - 1));
      root.querySelector(".map").replaceChildren(svg);
      root.querySelector(".which").textContent = `Layer ${layer + 1}, head ${head + 1}`;
      for (const c of root.querySelectorAll("canvas")) c.classList.toggle("on", c.dataset.head === `${layer},${head}`);
    };
    const heads = root.querySelector(".heads");
    view.weights.forEach((layers, layer) => {
      const line = make("div", { class: "row" });
      line.append(make("span", {}, `layer ${layer + 1}`));
      layers.forEach((weights, head) => {
        const canvas = make("canvas", { width: n, height: n, "data-head": `${layer},${head}`, tabindex: 0 });
        const pen = canvas.getContext("2d");
        weights.forEach((values, q) => values.forEach((w, k) => {
          pen.fillStyle = mix(view.colour, Math.sqrt(w));
          pen.fillRect(k, q, 1, 1);
        }));
        canvas.dataset.tip = `layer ${layer + 1}, head ${head + 1}`;
        canvas.addEventListener("click", () => show(layer, head));
        canvas.addEventListener("keydown", (e) => { if (e.key === "Enter") show(layer, head); });
        line.append(canvas);
      });
      heads.append(line);
    });
    show(...view.start);
  };
  for (const root of document.querySelectorAll("[data-attention]")) {
    drawAttention(root, data.attention[Number(root.dataset.attention)]);
  }
})();
