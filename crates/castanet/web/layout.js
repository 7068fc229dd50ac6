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

/** The nodes and the edges that are drawn: a folded compound is one node. Identifiers are of the page's own making:
    names may be any text, and an element may have the name of a compound. */
export function visible(graph, folded) {
  const nodes = new Map();
  const place = graph.elements.map((element, index) => {
    const around = compounds(element.name);
    const compound = around.find((name) => folded.has(name));
    const id = compound === undefined ? `element ${index}` : `compound ${compound}`;
    if (!nodes.has(id)) {
      const parents = compound === undefined ? around : around.slice(0, around.indexOf(compound));
      nodes.set(id, { id, name: compound ?? element.name, compound, elements: [], parents });
    }
    nodes.get(id).elements.push(index);
    return id;
  });
  for (const node of nodes.values()) {
    const element = graph.elements[node.elements[0]];
    const count = node.elements.length;
    node.titles = node.compound !== undefined
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
    if (!edges.has(id)) edges.set(id, { id, from, to, edges: [], isPull: true });
    edges.get(id).edges.push(index);
    edges.get(id).isPull &&= edge.is_pull;
  });
  return { nodes: [...nodes.values()], edges: [...edges.values()], place };
}

/** Nodes and edges together beyond which a layout takes too long. */
const TOO_MANY = 1500;

/** Whether there is too much to be drawn. */
export function isTooLarge(shown) {
  return shown.nodes.length + shown.edges.length > TOO_MANY;
}

/** Computes layouts of what is shown, each once: the function returns the one that an area of this shape shows larger. */
export function layouts(shown) {
  const known = new Map();
  const along = (direction) => {
    if (!known.has(direction)) known.set(direction, placeAlong(shown, direction));
    return known.get(direction);
  };
  return (area) => {
    const scale = ({ width, height }) => Math.min(area.width / width, area.height / height);
    const across = along("LR");
    if (scale(across) >= 1) return across;
    const down = along("TB");
    return scale(down) > scale(across) ? down : across;
  };
}

/** The places of nodes, edges and open compounds, by their identifiers. `direction` is LR or TB. */
function placeAlong(shown, direction) {
  const graph = new dagre.Graph({ multigraph: true, compound: true });
  graph.setGraph({
    rankdir: direction, ranker: "tight-tree", nodesep: 22, ranksep: 34, edgesep: 12, marginx: 8, marginy: 8,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  const connected = new Set(shown.edges.flatMap((edge) => [edge.from, edge.to]));
  const width = (node) => {
    const longest = Math.max(...node.titles.map((title, line) => title.length * CHARACTERS[line]));
    return Math.min(WIDEST, Math.max(NARROWEST, longest + 28));
  };
  for (const node of shown.nodes.filter((it) => connected.has(it.id))) {
    graph.setNode(node.id, { width: width(node), height: HEIGHT });
    let child = node.id;
    for (const parent of [...node.parents].reverse()) {
      const id = `open ${parent}`;
      if (!graph.hasNode(id)) graph.setNode(id, { compound: parent });
      graph.setParent(child, id);
      child = id;
    }
  }
  for (const edge of shown.edges) {
    graph.setEdge(edge.from, edge.to, { ...LABEL, labelpos: "c", id: edge.id }, edge.id);
  }
  dagre.layout(graph);
  const [nodes, edges, open] = [new Map(), new Map(), []];
  for (const id of graph.nodes()) {
    const { x, y, width, height, compound } = graph.node(id);
    if (compound === undefined) nodes.set(id, { x, y, width, height });
    else open.push({ compound, x, y, width, height });
  }
  for (const key of graph.edges()) {
    const { points, x, y, id } = graph.edge(key);
    edges.set(id, { points, x, y });
  }
  const alone = shown.nodes.filter((node) => !connected.has(node.id));
  return { ...placeAlone(alone, graph.graph(), width, nodes), nodes, edges, open };
}

/** Elements without connections stand in rows below the others. */
function placeAlone(alone, size, widthOf, nodes) {
  let width = Math.max(Number.isFinite(size.width) ? size.width : 0, 320);
  let [x, y] = [8, (Number.isFinite(size.height) ? size.height : 0) + 8];
  for (const node of alone) {
    const own = widthOf(node);
    if (x > 8 && x + own > width) [x, y] = [8, y + HEIGHT + 14];
    nodes.set(node.id, { x: x + own / 2, y: y + HEIGHT / 2, width: own, height: HEIGHT });
    width = Math.max(width, x + own + 8);
    x += own + 14;
  }
  return { width, height: alone.length > 0 ? y + HEIGHT + 8 : y };
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
