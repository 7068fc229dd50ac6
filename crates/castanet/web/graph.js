// The graph of the router: elements, connections with their rates, drops, and the route of a traced packet.

import { html, memo, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";
import { allCompounds, isTooLarge, layouts, path, visible } from "./layout.js";
import { useViewBox } from "./view_box.js";
import { rate, short, time } from "./format.js";

/** The rate on some connections together, and whether it is only the most that can pass: connections that share the
    packets of an element are bounded by these, not by the sum of their bounds. */
export function rateOfEdges(indices, graph, live) {
  let exact = 0;
  const sums = [new Map(), new Map()];
  for (const index of indices) {
    const { packets_per_second: packets = 0, bounds } = live?.edges[index] ?? {};
    if (!bounds) {
      exact += packets;
      continue;
    }
    [graph.edges[index].from, graph.edges[index].to].forEach((element, end) => {
      const before = sums[end].get(element)?.sum ?? 0;
      sums[end].set(element, { sum: before + packets, most: bounds[end] });
    });
  }
  const [byFrom, byTo] = sums.map((ends) =>
    [...ends.values()].reduce((total, { sum, most }) => total + Math.min(sum, most), 0));
  return { packets: exact + Math.min(byFrom, byTo), isBound: sums[0].size > 0 };
}

/** Drops of an element, those of the kernel before it among them. */
export function dropsOf(rates) {
  return {
    drops: (rates.drops ?? 0) + (rates.kernel_drops ?? 0),
    drops_per_second: (rates.drops_per_second ?? 0) + (rates.kernel_drops_per_second ?? 0),
  };
}

/** Rates of a node: those of its element, or of the elements of a folded compound together. */
function nodeRates(node, graph, live) {
  const rates = node.elements.map((index) => live?.elements[index] ?? {});
  if (node.compound === undefined) return { ...rates[0], ...dropsOf(rates[0]) };
  const inside = new Set(node.elements);
  const entering = graph.edges.keys().filter((index) => {
    const edge = graph.edges[index];
    return inside.has(edge.to) && !inside.has(edge.from);
  });
  const { packets, isBound } = rateOfEdges(entering, graph, live);
  const made = node.elements.filter((index) => graph.elements[index].inputs === 0);
  const own = made.reduce((total, index) => total + (live?.elements[index]?.packets_per_second ?? 0), 0);
  const drops = rates.map(dropsOf);
  const sum = (list, value) => list.reduce((total, it) => total + (it[value] ?? 0), 0);
  return {
    packets_per_second: packets + own, isBound, share: sum(rates, "share"),
    drops: sum(drops, "drops"), drops_per_second: sum(drops, "drops_per_second"),
  };
}

/** What is drawn of the rates of a node; its text changes when something of that does. */
function nodeLook(node, graph, live) {
  const rates = nodeRates(node, graph, live);
  const { queue, packets_per_second: packets, drops, drops_per_second: dropping } = rates;
  const figures = [`${rates.isBound ? "≤ " : ""}${rate(packets)}`];
  if (queue) figures.push(`${short(queue.length)}${queue.capacity ? ` of ${short(queue.capacity)}` : ""}`);
  if (rates.nanoseconds_per_packet && !queue) figures.push(time(rates.nanoseconds_per_packet));
  const look = {
    figures: figures.join("  ·  "),
    isIdle: !packets,
    heat: Math.round(Math.sqrt(Math.min(1, rates.share ?? 0)) * 50) * 2,
    filled: queue?.capacity ? Math.round((queue.length / queue.capacity) * 100) / 100 : null,
    drops: drops ? `▼ ${dropping > 0 ? rate(dropping) : short(drops)}` : null,
    dropped: drops ? `${short(drops)} packets dropped` : undefined,
    isDropping: dropping > 0,
  };
  return { ...look, text: JSON.stringify(look) };
}

function Drops({ look, width }) {
  if (!look.drops) return null;
  const length = look.drops.length * 6.6 + 12;
  return html`
    <g class=${look.isDropping ? "drops now" : "drops"} transform=${`translate(${width - length + 8},-9)`}>
      <rect width=${length} height="18" rx="9" />
      <text x=${length / 2} y="13">${look.drops}</text>
    </g>`;
}

const Node = memo(({ node, look, place, isSelected, isCurrent, order, isDropped }) => {
  const { width, height } = place;
  const isCompound = node.compound !== undefined;
  const classes = ["node", isCompound && "compound", isSelected && "selected",
    order !== undefined && "lit", isDropped && "dropped", look.isIdle && "idle"];
  return html`
    <g class=${classes.filter(Boolean).join(" ")} tabindex=${isCurrent ? 0 : -1} role="button" data-node=${node.name}
       data-id=${node.id} aria-description=${look.dropped} aria-pressed=${isSelected ? "true" : "false"}
       style=${{ "--heat": `${look.heat}%` }}
       transform=${`translate(${place.x - width / 2},${place.y - height / 2})`}>
      ${isCompound && html`<rect class="behind" x="4" y="4" width=${width} height=${height} rx="8" />`}
      <rect class="card" width=${width} height=${height} rx="8" />
      ${look.filled !== null && html`
        <rect class="filled" x="1" y=${height - 6} rx="2" height="5" width=${(width - 2) * Math.min(1, look.filled)} />`}
      <text class="name" x="10" y="19">${isCompound ? "▸ " : ""}${node.titles[0]}</text>
      <text class="class" x="10" y="34">${node.titles[1]}</text>
      <text class="figures" x="10" y="49">${look.figures}</text>
      <${Drops} look=${look} width=${width} />
      ${order !== undefined && html`
        <g class="order" transform="translate(-2,-4)"><circle r="9" /><text y="3.5">${order}</text></g>`}
    </g>`;
}, (before, after) => before.look.text === after.look.text
  && ["node", "place", "isSelected", "isCurrent", "order", "isDropped"].every((it) => before[it] === after[it]));

const Edge = memo(({ edge, place, packets, isBound, isLit }) => {
  const width = packets > 0 ? 1.2 + Math.min(3.6, Math.log10(packets + 1) * 0.6) : 1;
  const classes = ["edge", packets === 0 && "idle", edge.isPull && "pull", isLit && "lit"];
  return html`
    <g class=${classes.filter(Boolean).join(" ")}>
      <path d=${path(place.points)} style=${{ strokeWidth: isLit ? 4 : width }} marker-end="url(#arrow)" />
      ${packets > 0 && html`
        <text x=${place.x} y=${place.y + 4}>${isBound ? "≤ " : ""}${rate(packets)}</text>`}
    </g>`;
}, (before, after) => ["edge", "place", "packets", "isBound", "isLit"].every((it) => before[it] === after[it]));

/** A compound that is not folded: a frame with a button. */
function Frame({ place }) {
  const { compound, x, y, width, height } = place;
  const title = compound.split("/").at(-1);
  return html`
    <g class="frame" transform=${`translate(${x - width / 2},${y - height / 2})`}>
      <rect width=${width} height=${height} rx="10" />
      <g class="fold" tabindex="0" role="button" data-fold=${compound} aria-description="Folds the compound">
        <rect x="4" y="3" width=${title.length * 7 + 30} height="17" rx="4" />
        <text x="10" y="16">▾ ${title}</text>
      </g>
    </g>`;
}

/** Steps of a traced packet that are shown so far: one more every quarter of a second. */
function useLitSteps(route) {
  const [count, setCount] = useState(0);
  useEffect(() => {
    setCount(0);
    if (!route) return undefined;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (still) {
      setCount(route.length);
      return undefined;
    }
    const timer = setInterval(() => setCount((count) => {
      if (count >= route.length) clearInterval(timer);
      return count + 1;
    }), 250);
    return () => clearInterval(timer);
  }, [route]);
  return route ? route.slice(0, count) : [];
}

/** What a route lights: nodes with the number of the step, edges, and nodes where it ended in a drop. */
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

/** The identifier of the next node in the direction of an arrow key. */
function neighbour(key, id, nodes) {
  const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const [dx, dy] = directions[key] ?? [0, 0];
  const own = nodes.get(id);
  let best = null;
  for (const [other, place] of nodes) {
    const [x, y] = [place.x - own.x, place.y - own.y];
    const ahead = x * dx + y * dy;
    const aside = Math.abs(x * dy) + Math.abs(y * dx);
    const cost = ahead + aside * 2;
    if (other !== id && ahead > 1 && (!best || cost < best.cost)) best = { other, cost };
  }
  return best?.other;
}

function Tools({ view, compounds, setFolded }) {
  return html`
    <div class="tools" role="toolbar" aria-label="View of the graph">
      <button onClick=${() => view.zoom(0.8)} aria-label="Zoom in">+</button>
      <button onClick=${() => view.zoom(1.25)} aria-label="Zoom out">−</button>
      <button onClick=${view.fit}>Fit</button>
      ${compounds.length > 0 && html`
        <button onClick=${() => setFolded(new Set(compounds))}>Fold all</button>
        <button onClick=${() => setFolded(new Set())}>Unfold all</button>`}
    </div>`;
}

/** The size of an area of the page, in pixels. */
function useSize(area) {
  const [size, setSize] = useState({ width: 800, height: 600 });
  useLayoutEffect(() => {
    const measure = () => setSize({ width: area.current.clientWidth, height: area.current.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(area.current);
    return () => observer.disconnect();
  }, []);
  return size;
}

const NOTHING = { width: 1, height: 1, nodes: new Map(), edges: new Map(), open: [] };

/** The graph. `route` is that of a traced packet. */
export function Graph({ graph, live, folded, setFolded, selected, onSelect, route }) {
  const [svg, area] = [useRef(null), useRef(null)];
  const size = useSize(area);
  const shown = useMemo(() => visible(graph, folded), [graph, folded]);
  const isLarge = isTooLarge(shown);
  const layout = useMemo(() => (isLarge ? () => NOTHING : layouts(shown)), [shown]);
  const placed = layout(size);
  const view = useViewBox(svg, placed, size);
  const steps = useLitSteps(route);
  const lit = useMemo(() => litParts(steps, shown, graph), [steps.length, shown, graph, route]);
  const compounds = useMemo(() => [...allCompounds(graph).keys()], [graph]);
  const nodes = useMemo(() => new Map(shown.nodes.map((node) => [node.id, node])), [shown]);
  const isSelected = (node) => node.name === selected
    || (node.compound !== undefined && Boolean(selected?.startsWith(`${node.compound}/`)));

  // One node is reached by the tabulator, the others by arrows from there.
  const [focused, setFocused] = useState(null);
  const current = nodes.has(focused) ? focused : (shown.nodes.find(isSelected) ?? shown.nodes[0])?.id;

  // What was selected or unfolded last is brought into view, unless all of it is.
  const unfolded = useRef(null);
  useEffect(() => {
    const frame = placed.open.find((place) => place.compound === unfolded.current);
    unfolded.current = null;
    if (frame) view.reveal(frame);
  }, [shown]);
  useEffect(() => {
    const node = shown.nodes.find((it) => it.name === selected);
    if (node && placed.nodes.has(node.id)) view.reveal(placed.nodes.get(node.id));
  }, [selected]);

  const choose = (target) => {
    const fold = target.closest("[data-fold]")?.dataset.fold;
    const node = nodes.get(target.closest("[data-id]")?.dataset.id);
    if (fold !== undefined) {
      setFolded(new Set([...folded, fold]));
    } else if (node?.compound !== undefined) {
      unfolded.current = node.compound;
      setFolded(new Set([...folded].filter((it) => it !== node.compound)));
    } else if (node) {
      setFocused(node.id);
      onSelect(node.name);
    }
    return fold !== undefined || Boolean(node);
  };
  const key = (event) => {
    if (event.key === "Enter" || event.key === " ") {
      if (choose(event.target)) event.preventDefault();
      return;
    }
    const id = event.target.closest("[data-id]")?.dataset.id;
    const next = id && neighbour(event.key, id, placed.nodes);
    if (!next) return;
    event.preventDefault();
    setFocused(next);
    svg.current.querySelector(`[data-id="${CSS.escape(next)}"]`)?.focus();
    view.reveal(placed.nodes.get(next));
  };

  return html`
    <div class="graph" ref=${area}>
      <${Tools} view=${view} compounds=${compounds} setFolded=${setFolded} />
      ${isLarge && html`
        <p class="notice">${shown.nodes.length} elements are too many to draw: fold compounds, or see the table.</p>`}
      <svg ref=${svg} viewBox=${view.viewBox} role="group" aria-label="Elements and connections" ...${view.handlers}
           onClick=${(event) => choose(event.target)} onKeyDown=${key}>
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9"
                  orient="auto" markerUnits="userSpaceOnUse"><path d="M0,0 L8,4 L0,8 z" /></marker>
        </defs>
        ${placed.open.map((place) => html`<${Frame} key=${place.compound} place=${place} />`)}
        ${shown.edges.filter((edge) => placed.edges.has(edge.id)).map((edge) => html`
          <${Edge} key=${edge.id} edge=${edge} place=${placed.edges.get(edge.id)}
                   ...${rateOfEdges(edge.edges, graph, live)} isLit=${edge.edges.some((it) => lit.edges.has(it))} />`)}
        ${shown.nodes.filter((node) => placed.nodes.has(node.id)).map((node) => html`
          <${Node} key=${node.id} node=${node} look=${nodeLook(node, graph, live)} place=${placed.nodes.get(node.id)}
                   isSelected=${isSelected(node)} isCurrent=${node.id === current}
                   order=${lit.orders.get(node.id)} isDropped=${lit.dropped.has(node.id)} />`)}
      </svg>
    </div>`;
}
