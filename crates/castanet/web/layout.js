// Places of elements and connections: what is drawn while some compounds are folded, and where.

import * as dagre from "./vendor/dagre.js";
import { cut } from "./format.js";

/** Elements beyond which compounds are folded at first. */
const MANY = 60;
/** Widths of a character of the title and of the line below it, with a font that runs wide. */
const CHARACTERS = [8.6, 6.7];
const NARROWEST = 156;
const WIDEST = 262;
const HEIGHT = 58;
const LABEL = { width: 62, height: 16 };

/** The names of the compounds around an element, outermost first. */
function compounds(name) {
  const parts = name.split("/");
  return parts.slice(1).map((_, depth) => parts.slice(0, depth + 1).join("/"));
}

/** All compounds of a graph, each with the indices of its elements. */
export function allCompounds(graph) {
  const found = new Map();
  graph.elements.forEach((element, index) => {
    for (const compound of compounds(element.name)) {
      if (!found.has(compound)) found.set(compound, []);
      found.get(compound).push(index);
    }
  });
  return found;
}

/** The compounds that are folded at first: all, if there are many elements. */
export function foldedAtFirst(graph) {
  return new Set(graph.elements.length > MANY ? allCompounds(graph).keys() : []);
}

/** The title of an element and the line below it. */
export function titles(element) {
  const own = element.name.split("/").at(-1);
  const words = element.arguments.replace(/\s+/g, " ").trim();
  const second = words ? `${element.class}(${cut(words, 18)})` : element.class;
  // A name that was made up says only the class again.
  return own.includes("@") ? [cut(element.class, 27), cut(words, 34)] : [cut(own, 27), cut(second, 34)];
}

/** The nodes and the edges that are drawn: a folded compound is one node. */
export function visible(graph, folded) {
  const nodes = new Map();
  const place = graph.elements.map((element, index) => {
    const around = compounds(element.name);
    const compound = around.find((name) => folded.has(name));
    const id = compound ?? element.name;
    if (!nodes.has(id)) {
      const parents = compound ? around.slice(0, around.indexOf(compound)) : around;
      nodes.set(id, { id, compound, elements: [], parents });
    }
    nodes.get(id).elements.push(index);
    return id;
  });
  for (const node of nodes.values()) {
    const element = graph.elements[node.elements[0]];
    const count = node.elements.length;
    node.titles = node.compound
      ? [cut(node.compound.split("/").at(-1), 24), `${count} element${count === 1 ? "" : "s"}`]
      : titles(element);
  }
  const edges = new Map();
  graph.edges.forEach((edge, index) => {
    const [from, to] = [place[edge.from], place[edge.to]];
    const inside = nodes.get(from).compound !== undefined && from === to;
    if (inside) return;
    const whole = nodes.get(from).compound === undefined && nodes.get(to).compound === undefined;
    const id = whole ? `${from}[${edge.output}]>[${edge.input}]${to}` : `${from}>${to}`;
    if (!edges.has(id)) edges.set(id, { id, from, to, edges: [], isPull: edge.is_pull });
    edges.get(id).edges.push(index);
  });
  return { nodes: [...nodes.values()], edges: [...edges.values()], place };
}

/** Gives nodes, edges and open compounds their places, in the direction in which an area of this shape shows them
    larger. */
export function place(shown, area) {
  const scale = ({ width, height }) => Math.min(area.width / width, area.height / height);
  const across = placeAlong(shown, "LR");
  const acrossScale = scale(across);
  if (acrossScale >= 1) return across;
  const downScale = scale(placeAlong(shown, "TB"));
  // The last layout is the one that nodes and edges have.
  return placeAlong(shown, downScale > acrossScale ? "TB" : "LR");
}

/** Gives nodes, edges and open compounds their places. `direction` is LR or TB. */
function placeAlong(shown, direction) {
  const graph = new dagre.Graph({ multigraph: true, compound: true });
  graph.setGraph({ rankdir: direction, nodesep: 22, ranksep: 34, edgesep: 12, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  const connected = new Set(shown.edges.flatMap((edge) => [edge.from, edge.to]));
  const width = (node) => {
    const longest = Math.max(...node.titles.map((title, line) => title.length * CHARACTERS[line]));
    return Math.min(WIDEST, Math.max(NARROWEST, longest + 28));
  };
  for (const node of shown.nodes) {
    node.width = width(node);
    node.height = HEIGHT;
    if (!connected.has(node.id)) continue;
    graph.setNode(node.id, node);
    let child = node.id;
    for (const parent of [...node.parents].reverse()) {
      // Names of compounds are no names of elements in the layout.
      const id = `/${parent}`;
      if (!graph.hasNode(id)) graph.setNode(id, { compound: parent });
      graph.setParent(child, id);
      child = id;
    }
  }
  for (const edge of shown.edges) {
    graph.setEdge(edge.from, edge.to, { ...LABEL, labelpos: "c", drawn: edge }, edge.id);
  }
  dagre.layout(graph);
  const size = graph.graph();
  for (const id of graph.edges()) {
    const { points, x, y, drawn } = graph.edge(id);
    Object.assign(drawn, { points, x, y });
  }
  const open = graph.nodes().map((id) => graph.node(id)).filter((node) => !shown.nodes.includes(node));
  const alone = shown.nodes.filter((node) => !connected.has(node.id));
  return { ...placeAlone(alone, size), open };
}

/** Elements without connections stand in rows below the others. */
function placeAlone(nodes, size) {
  let width = Math.max(Number.isFinite(size.width) ? size.width : 0, 320);
  let [x, y] = [8, (Number.isFinite(size.height) ? size.height : 0) + 8];
  for (const node of nodes) {
    if (x > 8 && x + node.width > width) [x, y] = [8, y + HEIGHT + 14];
    [node.x, node.y] = [x + node.width / 2, y + HEIGHT / 2];
    width = Math.max(width, x + node.width + 8);
    x += node.width + 14;
  }
  return { width, height: nodes.length > 0 ? y + HEIGHT + 8 : y };
}

/** A line through points, with round corners. */
export function path(points) {
  const [first, ...rest] = points;
  let text = `M${first.x},${first.y}`;
  rest.forEach((point, index) => {
    const next = rest[index + 1];
    if (!next) {
      text += `L${point.x},${point.y}`;
      return;
    }
    const end = { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 };
    text += index === 0 || rest.length === 1 ? `L${(first.x + point.x) / 2},${(first.y + point.y) / 2}` : "";
    text += `Q${point.x},${point.y} ${end.x},${end.y}`;
  });
  return text;
}
