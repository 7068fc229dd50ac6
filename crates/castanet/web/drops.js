// Drops: why packets were dropped, with an example of each reason.

import { get } from "./client.js";
import { clock, rate, whole } from "./format.js";
import { html, useEffect, useRef, useState } from "./html.js";

const INTERVAL = 2;

/** The panel of drops. */
export function DropsPanel({ graph, live, tick, onSelect }) {
  const [drops, setDrops] = useState(null);
  const [error, setError] = useState(null);
  const last = useRef(null);
  useEffect(() => {
    let isWanted = true;
    get("/api/drops").then((answer) => {
      if (!isWanted) return;
      const [now, before] = [performance.now(), last.current];
      const key = (it) => `${it.element} ${it.reason}`;
      const counts = new Map(answer.map((it) => [key(it), it.packets]));
      for (const it of answer) {
        const earlier = before?.counts.get(key(it));
        it.rate = earlier === undefined ? 0 : Math.max(0, it.packets - earlier) / ((now - before.now) / 1000);
      }
      last.current = { now, counts };
      setDrops(answer.filter((it) => it.packets > 0).sort((a, b) => b.rate - a.rate || b.packets - a.packets));
      setError(null);
    }, (it) => isWanted && setError(it.message));
    return () => { isWanted = false; };
  }, [Math.floor(tick / INTERVAL)]);
  if (error) return html`<p class="error">${error}</p>`;
  if (!drops) return html`<p class="quiet">Reading drops.</p>`;
  const missed = graph.elements.map((it, index) => ({ name: it.name, ...live?.elements[index] })).filter((it) => it.kernel_drops > 0);
  if (drops.length + missed.length === 0) return html`<p class="quiet">No packet was dropped so far.</p>`;
  return html`
    <ul class="dropped">
      ${missed.map((it) => html`
        <li key=${it.name} class=${it.kernel_drops_per_second > 0 ? "now" : ""}>
          <div class="row">
            <button class="plain" onClick=${() => onSelect(it.name)}>${it.name}</button>
            <b>before the element</b>
            <span class="number">${whole(it.kernel_drops)}${it.kernel_drops_per_second > 0 && html` · <span class="error">${rate(it.kernel_drops_per_second)}</span>`}</span>
          </div>
          <p>Packets that the kernel or the driver dropped because the element did not take them in time. Give the interface more workers, or look for what takes the time of this one.</p>
        </li>`)}
      ${drops.map((it) => html`
        <li key=${`${it.element} ${it.reason}`} class=${it.rate > 0 ? "now" : ""}>
          <div class="row">
            <button class="plain" onClick=${() => onSelect(it.element)}>${it.element}</button>
            <b>${it.reason}</b>
            <span class="number">${whole(it.packets)}${it.rate > 0 && html` · <span class="error">${rate(it.rate)}</span>`}</span>
          </div>
          <p>${it.meaning}</p>
          ${it.example && html`
            <p class="quiet"><code class="packet">${it.example.text}</code> ${it.example.length} bytes, ${clock(it.example.time)}</p>`}
        </li>`)}
    </ul>`;
}
