// The graph of the router: elements, connections with their rates, drops, and the way of a traced packet.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";
import { allCompounds, path, place, visible } from "./layout.js";
import { useViewBox } from "./view_box.js";
import { rate, short, time } from "./format.js";

/** Nodes beyond which a layout takes too long. */
const TOO_MANY = 700;

/** Rates of a node: those of its element, or sums over the elements of a folded compound. */
function nodeRates(node, graph, live) {
  const rates = node.elements.map((index) => live?.elements[index] ?? {});
  if (!node.compound) return rates[0];
  const sum = (value) => rates.reduce((total, it) => total + (it[value] ?? 0), 0);
  const inside = new Set(node.elements);
  const entering = graph.edges.reduce((total, edge, index) => {
    const enters = inside.has(edge.to) && !inside.has(edge.from);
    return total + (enters ? live?.edges[index]?.packets_per_second ?? 0 : 0);
  }, 0);
  const made = node.elements.filter((index) => graph.elements[index].inputs === 0);
  const own = made.reduce((total, index) => total + (live?.elements[index]?.packets_per_second ?? 0), 0);
  return {
    packets_per_second: entering + own, share: sum("share"),
    drops: sum("drops"), drops_per_second: sum("drops_per_second"),
  };
}

function Drops({ rates, width }) {
  if (!rates.drops) return null;
  const now = rates.drops_per_second > 0;
  const text = now ? `▼ ${rate(rates.drops_per_second)}` : `▼ ${short(rates.drops)}`;
  const length = text.length * 6.6 + 12;
  return html`
    <g class=${now ? "drops now" : "drops"} transform=${`translate(${width - length + 8},-9)`}>
      <rect width=${length} height="18" rx="9" />
      <text x=${length / 2} y="13">${text}</text>
    </g>`;
}

function Node({ node, rates, isSelected, order, isDropped, onChoose, onKey }) {
  const { width, height } = node;
  const heat = Math.min(1, rates.share ?? 0);
  const queue = rates.queue;
  const figures = [rate(rates.packets_per_second)];
  if (queue) figures.push(`${short(queue.length)}${queue.capacity ? ` of ${short(queue.capacity)}` : ""}`);
  if (rates.nanoseconds_per_packet && !queue) figures.push(time(rates.nanoseconds_per_packet));
  const classes = ["node", node.compound && "compound", isSelected && "selected",
    order !== undefined && "lit", isDropped && "dropped", !rates.packets_per_second && "idle"];
  return html`
    <g class=${classes.filter(Boolean).join(" ")} tabindex="0" role="button" data-node=${node.id}
       aria-description=${rates.drops ? `${short(rates.drops)} packets dropped` : undefined} aria-pressed=${isSelected ? "true" : "false"}
       style=${{ "--heat": `${Math.round(Math.sqrt(heat) * 100)}%` }}
       transform=${`translate(${node.x - width / 2},${node.y - height / 2})`}
       onClick=${() => onChoose(node)} onKeyDown=${(event) => onKey(event, node)}>
      ${node.compound && html`<rect class="behind" x="4" y="4" width=${width} height=${height} rx="8" />`}
      <rect class="card" width=${width} height=${height} rx="8" />
      ${queue?.capacity && html`
        <rect class="filled" x="1" y=${height - 6} rx="2" height="5"
              width=${Math.max(0, (width - 2) * Math.min(1, queue.length / queue.capacity))} />`}
      <text class="name" x="10" y="19">${node.compound ? "▸ " : ""}${node.titles[0]}</text>
      <text class="class" x="10" y="34">${node.titles[1]}</text>
      <text class="figures" x="10" y="49">${figures.join("  ·  ")}</text>
      <${Drops} rates=${rates} width=${width} />
      ${order !== undefined && html`
        <g class="order" transform="translate(-2,-4)"><circle r="9" /><text y="3.5">${order}</text></g>`}
    </g>`;
}

function Edge({ edge, live, lit }) {
  const rates = edge.edges.map((index) => live?.edges[index] ?? {});
  const packets = rates.reduce((total, it) => total + (it.packets_per_second ?? 0), 0);
  const isBound = rates.some((it) => it.is_bound);
  const width = packets > 0 ? 1.2 + Math.min(3.6, Math.log10(packets + 1) * 0.6) : 1;
  const classes = ["edge", packets === 0 && "idle", edge.isPull && "pull", lit && "lit"];
  return html`
    <g class=${classes.filter(Boolean).join(" ")}>
      <path d=${path(edge.points)} style=${{ strokeWidth: lit ? 4 : width }} marker-end="url(#arrow)" />
      ${packets > 0 && html`
        <text x=${edge.x} y=${edge.y + 4}>${isBound ? "≤ " : ""}${rate(packets)}</text>`}
    </g>`;
}

/** A compound that is not folded: a frame with a button. */
function Frame({ node, onFold }) {
  const [x, y] = [node.x - node.width / 2, node.y - node.height / 2];
  const fold = () => onFold(node.compound);
  const key = (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      fold();
    }
  };
  return html`
    <g class="frame" transform=${`translate(${x},${y})`}>
      <rect width=${node.width} height=${node.height} rx="10" />
      <g class="fold" tabindex="0" role="button" data-fold=${node.compound}
         aria-description="Folds the compound" onClick=${fold} onKeyDown=${key}>
        <rect x="4" y="3" width=${node.compound.split("/").at(-1).length * 7 + 30} height="17" rx="4" />
        <text x="10" y="16">▾ ${node.compound.split("/").at(-1)}</text>
      </g>
    </g>`;
}

/** Steps of a traced packet that are shown so far: one more every quarter of a second. */
function useLitSteps(way) {
  const [count, setCount] = useState(0);
  useEffect(() => {
    setCount(0);
    if (!way) return undefined;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (still) {
      setCount(way.length);
      return undefined;
    }
    const timer = setInterval(() => setCount((count) => {
      if (count >= way.length) clearInterval(timer);
      return count + 1;
    }), 250);
    return () => clearInterval(timer);
  }, [way]);
  return way ? way.slice(0, count) : [];
}

/** What a way lights: nodes with the number of the step, edges, and nodes where it ended in a drop. */
function litParts(steps, shown, graph) {
  const [orders, edges, dropped] = [new Map(), new Set(), new Set()];
  const places = new Map(graph.elements.map((element, index) => [element.name, index]));
  steps.forEach((step) => {
    const index = places.get(step.element);
    if (index === undefined) return;
    const node = shown.place[index];
    if (!orders.has(node)) orders.set(node, orders.size + 1);
    if (step.isDrop) dropped.add(node);
    for (const output of step.outputs) {
      const edge = graph.edges.findIndex((it) => it.from === index && it.output === output);
      if (edge >= 0) edges.add(edge);
    }
  });
  return { orders, edges, dropped };
}

/** The next node in the direction of an arrow key. */
function neighbour(key, node, nodes) {
  const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const [dx, dy] = directions[key] ?? [0, 0];
  let best = null;
  for (const other of nodes) {
    const [x, y] = [other.x - node.x, other.y - node.y];
    const ahead = x * dx + y * dy;
    const aside = Math.abs(x * dy) + Math.abs(y * dx);
    const cost = ahead + aside * 2;
    if (other !== node && ahead > 1 && (!best || cost < best.cost)) best = { other, cost };
  }
  return best?.other;
}

/** The graph. `way` is that of a traced packet. */
export function Graph({ graph, live, folded, setFolded, selected, onSelect, way }) {
  const svg = useRef(null);
  const area = useRef(null);
  const [size, setSize] = useState({ width: 800, height: 600 });
  useLayoutEffect(() => {
    const measure = () => setSize({ width: area.current.clientWidth, height: area.current.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(area.current);
    return () => observer.disconnect();
  }, []);

  const shown = useMemo(() => visible(graph, folded), [graph, folded]);
  const tooMany = shown.nodes.length > TOO_MANY;
  const placed = useMemo(
    () => (tooMany ? { width: 1, height: 1, open: [] } : place(shown, size)),
    [shown, size.width, size.height, tooMany],
  );
  const view = useViewBox(svg, placed, size);
  const steps = useLitSteps(way);
  const lit = useMemo(() => litParts(steps, shown, graph), [steps.length, shown, graph, way]);

  // What was selected or unfolded last is brought into view, unless all of it is.
  const unfolded = useRef(null);
  useEffect(() => {
    const frame = placed.open.find((node) => node.compound === unfolded.current);
    unfolded.current = null;
    if (frame) view.reveal(frame);
  }, [placed]);
  useEffect(() => {
    const node = shown.nodes.find((it) => it.id === selected);
    if (node) view.reveal(node);
  }, [selected]);

  const fold = (compound) => setFolded(new Set([...folded, compound]));
  const unfold = (compound) => {
    unfolded.current = compound;
    setFolded(new Set([...folded].filter((it) => it !== compound)));
  };
  const isSelected = (node) => node.id === selected || (node.compound && selected?.startsWith(`${node.compound}/`));
  const choose = (node) => (node.compound ? unfold(node.compound) : onSelect(node.id));
  const key = (event, node) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(node);
      return;
    }
    const next = neighbour(event.key, node, shown.nodes);
    if (next) {
      event.preventDefault();
      svg.current.querySelector(`[data-node="${CSS.escape(next.id)}"]`)?.focus();
      view.reveal(next);
    }
  };
  const compounds = useMemo(() => [...allCompounds(graph).keys()], [graph]);

  return html`
    <div class="graph" ref=${area}>
      <div class="tools" role="toolbar" aria-label="View of the graph">
        <button onClick=${() => view.zoom(0.8)} aria-label="Zoom in">+</button>
        <button onClick=${() => view.zoom(1.25)} aria-label="Zoom out">−</button>
        <button onClick=${view.fit}>Fit</button>
        ${compounds.length > 0 && html`
          <button onClick=${() => setFolded(new Set(compounds))}>Fold all</button>
          <button onClick=${() => setFolded(new Set())}>Unfold all</button>`}
      </div>
      ${tooMany && html`
        <p class="notice">${shown.nodes.length} elements are too many to draw: fold compounds, or see the table.</p>`}
      <svg ref=${svg} viewBox=${view.viewBox} role="group" aria-label="Elements and connections" ...${view.handlers}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9"
                  orient="auto" markerUnits="userSpaceOnUse"><path d="M0,0 L8,4 L0,8 z" /></marker>
        </defs>
        ${!tooMany && html`
          ${placed.open.map((node) => html`<${Frame} key=${`/${node.compound}`} node=${node} onFold=${fold} />`)}
          ${shown.edges.map((edge) => html`
            <${Edge} key=${edge.id} edge=${edge} live=${live} lit=${edge.edges.some((it) => lit.edges.has(it))} />`)}
          ${shown.nodes.map((node) => html`
            <${Node} key=${node.id} node=${node} rates=${nodeRates(node, graph, live)}
                     isSelected=${isSelected(node)} order=${lit.orders.get(node.id)}
                     isDropped=${lit.dropped.has(node.id)} onChoose=${choose} onKey=${key} />`)}`}
      </svg>
    </div>`;
}
