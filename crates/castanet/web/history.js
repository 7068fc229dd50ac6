// Charts of the last ten minutes of an element.

import { get } from "./client.js";
import { short, time } from "./format.js";
import { html, useEffect, useRef, useState } from "./html.js";

const HEIGHT = 118;

/** The charts: title, columns of the history, and the text of a value. */
const CHARTS = [
  { title: "packets/s", columns: ["packets_per_second"], colours: ["--line"], text: short },
  { title: "drops/s", columns: ["drops_per_second"], colours: ["--bad"], text: short },
  { title: "time a packet", columns: ["nanoseconds_per_packet"], colours: ["--line"], text: time },
  { title: "packets in the queue", columns: ["queue"], colours: ["--line"], text: short },
];

/** A colour of the style sheet, as it is now. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`${name}-now`).trim() || "#888";
}

function options(chart, width) {
  const text = colour("--muted");
  const axis = { stroke: text, grid: { stroke: colour("--border"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.1 : 1] } },
    axes: [
      { ...axis, size: 22 },
      { ...axis, size: 58, space: 28, values: (_, values) => values.map((it) => chart.text(it)) },
    ],
    series: [
      {},
      ...chart.columns.map((_, index) => ({
        stroke: colour(chart.colours[index]), fill: `${colour(chart.colours[index])}22`, width: 1.5, points: { show: false },
      })),
    ],
  };
}

function Chart({ chart, columns, theme }) {
  const area = useRef(null);
  const plot = useRef(null);
  const data = [columns.time, ...chart.columns.map((name) => columns[name])];
  useEffect(() => {
    const make = () => new uPlot(options(chart, Math.max(area.current.clientWidth, 120)), data, area.current);
    plot.current = make();
    const observer = new ResizeObserver(() => {
      plot.current.setSize({ width: Math.max(area.current.clientWidth, 120), height: HEIGHT });
    });
    observer.observe(area.current);
    return () => {
      observer.disconnect();
      plot.current.destroy();
    };
  }, [chart, theme]);
  useEffect(() => plot.current?.setData(data), [columns]);
  const known = columns[chart.columns[0]].filter((it) => it !== null);
  const last = known.at(-1);
  const spoken = `${chart.title}: now ${chart.text(last)}, at most ${chart.text(Math.max(...known))}`;
  return html`
    <figure>
      <figcaption>${chart.title} <b>${chart.text(last)}</b></figcaption>
      <div class="chart" ref=${area} role="img" aria-label=${spoken}></div>
    </figure>`;
}

/** The history of an element. */
export function History({ element, tick, theme }) {
  const [columns, setColumns] = useState(null);
  useEffect(() => setColumns(null), [element]);
  useEffect(() => {
    let isWanted = true;
    get("/api/history", { element }).then((it) => isWanted && setColumns(it), () => {});
    return () => { isWanted = false; };
  }, [element, Math.floor(tick / 2)]);
  if (!columns || columns.time.length < 2) return html`<p class="quiet">The history begins in a moment.</p>`;
  const shown = CHARTS.filter((chart) => {
    const values = columns[chart.columns[0]];
    const wanted = chart.title === "drops/s" ? (it) => it > 0 : (it) => it !== null;
    return chart.title === "packets/s" || values.some(wanted);
  });
  return shown.map((chart) => html`<${Chart} key=${element + chart.title} chart=${chart} columns=${columns} theme=${theme} />`);
}
