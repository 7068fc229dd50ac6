// All elements in a table, to be sorted and filtered.

import { bits, percent, rate, short, time, whole } from "./format.js";
import { dropsOf } from "./graph.js";
import { html, useMemo, useState } from "./html.js";

/** Rows that are drawn at most. */
const MOST = 250;

/** Columns: title, value to sort by, and text. */
const COLUMNS = [
  { title: "element", value: (it) => it.name, text: (it) => it.name },
  { title: "class", value: (it) => it.class, text: (it) => it.class },
  { title: "packets/s", value: (it) => it.packets_per_second ?? 0, text: (it) => rate(it.packets_per_second) },
  { title: "bit/s", value: (it) => it.bytes_per_second ?? 0, text: (it) => bits(it.bytes_per_second) },
  { title: "drops/s", value: (it) => it.drops_per_second ?? 0, text: (it) => rate(it.drops_per_second) },
  { title: "drops", value: (it) => it.drops ?? 0, text: (it) => short(it.drops) },
  { title: "time a packet", value: (it) => it.nanoseconds_per_packet ?? 0, text: (it) => time(it.nanoseconds_per_packet) },
  { title: "worker", value: (it) => it.share ?? 0, text: (it) => percent(it.share) },
  { title: "queue", value: (it) => it.queue?.length ?? -1, text: (it) => (it.queue ? short(it.queue.length) : "") },
];

/** The table. */
export function Table({ graph, live, selected, onSelect }) {
  const [column, setColumn] = useState(2);
  const [isDescending, setDescending] = useState(true);
  const [filter, setFilter] = useState("");
  const rows = useMemo(() => {
    const words = filter.toLowerCase();
    const all = graph.elements.map((element, index) => {
      const rates = live?.elements[index] ?? {};
      return { ...element, ...rates, ...dropsOf(rates) };
    });
    const kept = all.filter((it) => `${it.name} ${it.class}`.toLowerCase().includes(words));
    const { value } = COLUMNS[column];
    const order = (a, b) => (column < 2 ? value(a).localeCompare(value(b)) : value(a) - value(b));
    return kept.sort((a, b) => (isDescending ? order(b, a) : order(a, b)));
  }, [graph, live, column, isDescending, filter]);
  const sort = (index) => {
    setDescending(index === column ? !isDescending : index > 1);
    setColumn(index);
  };
  const direction = isDescending ? "descending" : "ascending";
  return html`
    <div class="elements">
      <label>Filter <input type="search" value=${filter} placeholder="name or class"
                           onInput=${(event) => setFilter(event.target.value)} /></label>
      <div class="scroll" tabindex="0" role="region" aria-label="Elements">
        <table>
          <thead><tr>
            ${COLUMNS.map(({ title }, index) => html`
              <th key=${title} scope="col" aria-sort=${index === column ? direction : "none"}>
                <button class="plain" onClick=${() => sort(index)}>${title}${index === column ? (isDescending ? " ▾" : " ▴") : ""}</button>
              </th>`)}
          </tr></thead>
          <tbody>
            ${rows.slice(0, MOST).map((it) => html`
              <tr key=${it.name} class=${it.name === selected ? "selected" : ""}>
                <td><button class="plain" onClick=${() => onSelect(it.name)}>${it.name}</button></td>
                ${COLUMNS.slice(1).map(({ title, text }, index) => html`
                  <td key=${title} class=${index > 0 ? "number" : ""}>${text(it)}</td>`)}
              </tr>`)}
          </tbody>
        </table>
      </div>
      ${rows.length > MOST && html`
        <p class="quiet">The first ${MOST} of ${whole(rows.length)} elements: a filter, or another order, shows others.</p>`}
    </div>`;
}
