// The comparison's own figure: surprise, token by token.
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
})();
