"use strict";
const LEFT = 76, RIGHT = 16, TOP = 12, BOTTOM = 46;
const make = (tag, attributes = {}, ...children) => {
  const svg = ["svg", "g", "path", "line", "text", "circle", "rect", "clipPath"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value); else node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const short = v => v === 0 ? "0" : Math.abs(v) >= 1e-2 && Math.abs(v) < 1e5 ? String(+v.toPrecision(4)) : v.toExponential(2);

const figure = v => short(v).replace(/\.0+e/, "e");

function ticks(low, high, log, most = 7) {
  if (log && high / low >= 10) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9), found = [];
    const stride = Math.max(1, Math.ceil((last - first) / (most + 2)));
    for (let k = first; k <= last; k += stride) found.push(10 ** k);
    if (found.length < 3) for (let k = first - 1; k <= last; k++) for (const m of [2, 5]) found.push(m * 10 ** k);
    return found.filter(v => v >= low && v <= high);
  }
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw) || 1, found = [];
  for (let v = Math.ceil(low / step) * step; v <= high + 1e-9 * step; v += step) found.push(+v.toPrecision(12));
  return found;
}

// Draws the curves of `data` into `root`, and returns a function that draws others in their place, as the reader left the view.
function chart(root, data) {
  const best = () => data.quantities[data.norm] ? data.norm : Object.keys(data.quantities)[0];
  const positive = name => !data.series.some(s => s.curves[name] && s.curves[name].step[1].some(v => v < 0));  // an energy may be negative
  const view = { chosen: null, quantity: best(), against: "step", logx: data.wide.step, logy: true, hidden: new Set(), pointer: null };
  const plot = make("div", { class: "plot" }), tip = make("div", { class: "tip" }), legend = make("div", { class: "legend" });
  const choose = make("select", { "aria-label": "quantity", onchange: e => { view.chosen = view.quantity = e.target.value; view.logy = logy.checked = positive(view.quantity); draw(); } });
  const axis = make("select", { "aria-label": "horizontal axis", onchange: e => { view.against = e.target.value; view.logx = logx.checked = data.wide[view.against]; draw(); } },
    make("option", { value: "step" }, "iterations"), make("option", { value: "time" }, "time stepping [s]"));
  const box = (name, text) => {
    const input = make("input", { type: "checkbox", onchange: e => { view[name] = e.target.checked; draw(); } });
    input.checked = view[name];
    return [input, make("label", {}, input, " " + text)];
  };
  view.logy = positive(view.quantity);
  const [logx, logxLabel] = box("logx", "log x"), [logy, logyLabel] = box("logy", "log y");
  root.append(make("div", { class: "bar" }, choose, "against", axis, logxLabel, logyLabel), plot, legend);
  const button = s => {
    const line = make("svg", { viewBox: "0 0 30 10", style: "width:30px" },
      make("line", { x1: 0, x2: 30, y1: 5, y2: 5, stroke: s.color, "stroke-width": 2.5, "stroke-dasharray": s.dash }));
    const node = make("button", { type: "button", "aria-pressed": String(!view.hidden.has(s.label)), onclick: () => {
      view.hidden.has(s.label) ? view.hidden.delete(s.label) : view.hidden.add(s.label);
      node.setAttribute("aria-pressed", String(!view.hidden.has(s.label)));
      draw();
    } }, line, s.label + (s.seeds > 1 ? ` (${s.seeds} seeds)` : ""));
    return node;
  };
  let listed = "";
  function show(next) {
    data = next;
    const names = JSON.stringify([data.quantities, data.series.map(s => [s.label, s.color, s.dash, s.seeds])]);
    if (names !== listed) {
      listed = names;
      choose.replaceChildren(...Object.entries(data.quantities).map(([n, title]) => make("option", { value: n }, title)));
      legend.replaceChildren(...data.series.map(button));
    }
    choose.value = view.quantity = data.quantities[view.chosen] ? view.chosen : best();
    draw();
  }
  const id = root.id;

  function draw() {
    const W = Math.max(320, Math.min(1040, root.clientWidth || 1040)), H = W < 600 ? 330 : 430;
    const good = (v, log) => v !== null && (!log || v > 0);
    const shown = data.series.filter(s => !view.hidden.has(s.label) && s.curves[view.quantity]).map(s => {
      const [x, y, low, high] = s.curves[view.quantity][view.against];
      const keep = x.map((v, i) => i).filter(i => good(x[i], view.logx) && good(y[i], view.logy));
      const pick = list => list ? keep.map(i => list[i]) : null;
      return { s, x: pick(x), y: pick(y), low: pick(low), high: pick(high) };
    }).filter(c => c.x.length);
    const xs = shown.flatMap(c => c.x), ys = shown.flatMap(c => c.y.concat((c.low || []).filter(v => good(v, view.logy)), (c.high || []).filter(v => good(v, view.logy))));
    const range = (list, log) => {
      let low = Math.min(...list), high = Math.max(...list);
      if (!list.length) { low = 1; high = 10; }
      if (low === high) { low = log ? low / 2 : low - 1; high = log ? high * 2 : high + 1; }
      const pad = log ? (high / low) ** 0.04 : (high - low) * 0.04;
      return log ? [low / pad, high * pad] : [low - pad, high + pad];
    };
    const scale = ([low, high], log, from, to) => v => from + (to - from) * (log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
    const rx = range(xs, view.logx), ry = range(ys, view.logy);
    const X = scale(rx, view.logx, LEFT, W - RIGHT), Y = scale(ry, view.logy, H - BOTTOM, TOP);
    const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": data.quantities[view.quantity] });
    for (const v of ticks(...ry, view.logy)) svg.append(
      make("line", { x1: LEFT, x2: W - RIGHT, y1: Y(v), y2: Y(v), stroke: "#e4e4e4" }),
      make("text", { x: LEFT - 8, y: Y(v) + 4, "text-anchor": "end" }, figure(v)));
    for (const v of ticks(...rx, view.logx, W < 600 ? 3 : 7)) svg.append(
      make("line", { x1: X(v), x2: X(v), y1: TOP, y2: H - BOTTOM, stroke: "#e4e4e4" }),
      make("text", { x: X(v), y: H - BOTTOM + 18, "text-anchor": "middle" }, figure(v)));
    svg.append(make("text", { x: (LEFT + W) / 2, y: H - 8, "text-anchor": "middle" }, axis.selectedOptions[0].text),
      make("text", { transform: `translate(16 ${(H - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, data.quantities[view.quantity]));
    const clip = make("g", { "clip-path": `url(#clip-${id})` });
    svg.append(make("clipPath", { id: `clip-${id}` }, make("rect", { x: LEFT, y: TOP, width: W - LEFT - RIGHT, height: H - TOP - BOTTOM })), clip);
    for (const c of shown) {
      const point = (x, y) => `${X(x).toFixed(1)} ${Y(view.logy ? Math.max(y, ry[0]) : y).toFixed(1)}`;
      if (c.low) clip.append(make("path", { fill: c.s.color, opacity: .16, d:
        "M" + c.x.map((x, i) => point(x, c.low[i])).join("L") + "L" + c.x.map((x, i) => point(x, c.high[i])).reverse().join("L") + "Z" }));
      clip.append(make("path", { fill: "none", stroke: c.s.color, "stroke-width": 2, "stroke-dasharray": c.s.dash, "stroke-linejoin": "round",
        d: "M" + c.x.map((x, i) => point(x, c.y[i])).join("L") }));
      if (c.s.dead) clip.append(make("text", { x: X(c.x.at(-1)), y: Y(c.y.at(-1)) + 6, "text-anchor": "middle", style: `font-size:20px;fill:${c.s.color}` }, "✕"));
      const dot = c.s.dots[view.against];
      if (view.quantity === data.norm && dot && good(dot[0], view.logx)) clip.append(make("circle", { cx: X(dot[0]), cy: Y(dot[1]), r: 5.5, fill: c.s.color, stroke: "#fff", "stroke-width": 1.5 }));
    }
    const cursor = make("line", { y1: TOP, y2: H - BOTTOM, stroke: "#999", "stroke-dasharray": "3 3", visibility: "hidden" });
    svg.append(cursor);
    const move = event => {
      view.pointer = event;
      const rect = svg.getBoundingClientRect(), at = (event.clientX - rect.left) * W / rect.width;
      if (at < LEFT || at > W - RIGHT || !shown.length) return hide();
      const rows = shown.map(c => {
        let best = 0;
        c.x.forEach((x, i) => { if (Math.abs(X(x) - at) < Math.abs(X(c.x[best]) - at)) best = i; });
        return [c.s, c.x[best], c.y[best]];
      }).sort((a, b) => b[2] - a[2]);
      cursor.setAttribute("x1", at); cursor.setAttribute("x2", at); cursor.setAttribute("visibility", "visible");
      tip.replaceChildren(...rows.map(([s, x, y]) => {
        const mark = make("span", { style: `color:${s.color}` }, "● ");
        return make("div", {}, mark, `${s.label}: ${short(y)} at ${short(x)}${view.against === "time" ? " s" : ""}`);
      }));
      tip.style.display = "block";
      const left = event.clientX - rect.left;
      tip.style.left = (left > rect.width / 2 ? left - tip.offsetWidth - 14 : left + 14) + "px";
      tip.style.top = Math.max(0, event.clientY - rect.top - 20) + "px";
    };
    const hide = () => { view.pointer = null; tip.style.display = "none"; cursor.setAttribute("visibility", "hidden"); };
    svg.addEventListener("pointermove", move);
    svg.addEventListener("pointerleave", hide);
    plot.replaceChildren(svg, tip);
    if (view.pointer) move(view.pointer);
  }
  show(data);
  let width = root.clientWidth;
  addEventListener("resize", () => { if (root.clientWidth !== width) { width = root.clientWidth; draw(); } });
  return show;
}
