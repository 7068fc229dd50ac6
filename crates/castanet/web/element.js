// One element: its rates, its drops, its history, its handlers, its manual page.

import { get, getText, post } from "./client.js";
import { bits, percent, rate, short, time, whole } from "./format.js";
import { History } from "./history.js";
import { html, useEffect, useRef, useState } from "./html.js";

/** Rates of the element, as pairs of a name and a text. */
function figures(rates) {
  const rows = [["packets", rate(rates.packets_per_second)]];
  if (rates.bytes_per_second !== undefined) rows.push(["bits", bits(rates.bytes_per_second)]);
  rows.push(["drops", rate(rates.drops_per_second)]);
  if (rates.nanoseconds_per_packet !== undefined) rows.push(["time a packet", time(rates.nanoseconds_per_packet)]);
  if (rates.share !== undefined) rows.push(["of a worker", percent(rates.share)]);
  if (rates.burst !== undefined) rows.push(["burst", short(rates.burst)]);
  if (rates.queue) {
    const most = rates.queue.capacity ? ` of ${whole(rates.queue.capacity)}` : "";
    rows.push(["in the queue", `${whole(rates.queue.length)}${most}`]);
  }
  if (rates.kernel_drops !== undefined) rows.push(["dropped before it", whole(rates.kernel_drops)]);
  rows.push(["packets so far", whole(rates.packets)]);
  return rows;
}

function Reasons({ reasons }) {
  const rows = Object.entries(reasons ?? {});
  if (rows.length === 0) return null;
  return html`
    <h3>Drops</h3>
    <table><tbody>
      ${rows.map(([reason, count]) => html`
        <tr key=${reason}><td>${reason}</td><td class="number">${whole(count)}</td></tr>`)}
    </tbody></table>`;
}

/** A form that writes a handler. */
function WriteForm({ element, handler, isRead, onDone }) {
  const [value, setValue] = useState("");
  const [answer, setAnswer] = useState(null);
  const write = async (event) => {
    event.preventDefault();
    try {
      await post("/api/write", { handler: `${element}.${handler}`, value });
      setAnswer({ text: "written" });
      onDone();
    } catch (error) {
      setAnswer({ text: error.message, isError: true });
    }
  };
  return html`
    <form class="write" onSubmit=${write}>
      <input aria-label=${`new value of ${handler}`} placeholder=${isRead ? "new value" : "value, if it takes one"}
             value=${value} onInput=${(event) => setValue(event.target.value)} />
      <button aria-label=${`Write ${handler}`}>Write</button>
      <output class=${answer?.isError ? "error" : "quiet"}>${answer?.text ?? ""}</output>
    </form>`;
}

function Handler({ element, handler, value, mayWrite, onDone }) {
  const [asked, setAsked] = useState(null);
  const read = async () => {
    try {
      const [answer] = await get("/api/read", { handler: `${element}.${handler.name}` });
      setAsked(answer);
    } catch (error) {
      setAsked({ error: error.message });
    }
  };
  const done = () => {
    setAsked(null);
    onDone();
  };
  const shown = asked ?? value;
  const text = shown?.value ?? "";
  const isLong = text.length > 60 || text.includes("\n");
  return html`
    <li>
      <div class="handler">
        <code>${handler.name}</code>
        ${shown?.error && html`<span class="error">${shown.error}</span>`}
        ${shown && !shown.error && !isLong && html`<b class="value">${text || "(empty)"}</b>`}
        ${handler.is_read && (!value || value.is_cut) && html`
          <button onClick=${read} aria-label=${`Read ${handler.name}`}>${value ? "Read all" : "Read"}</button>`}
      </div>
      ${shown && !shown.error && isLong && html`<pre tabindex="0" aria-label=${`value of ${handler.name}`}>${text}</pre>`}
      <p class="quiet">${handler.doc}</p>
      ${mayWrite && handler.is_written && html`
        <${WriteForm} element=${element} handler=${handler.name} isRead=${handler.is_read} onDone=${done} />`}
    </li>`;
}

function Manual({ name }) {
  const [page, setPage] = useState(null);
  const area = useRef(null);
  useEffect(() => setPage(null), [name]);
  const open = (event) => {
    if (!event.target.open || page !== null) return;
    getText("/api/manual", { class: name }).then(setPage, () => setPage("<p>The page cannot be read now.</p>"));
  };
  useEffect(() => {
    // The instance makes this HTML from its own manual.
    area.current.innerHTML = page ?? "";
    // Keys scroll what the mouse scrolls.
    area.current.querySelectorAll("pre").forEach((it) => { it.tabIndex = 0; });
  }, [page]);
  return html`
    <details class="manual" key=${name} onToggle=${open}>
      <summary>Manual page of ${name}</summary>
      <div ref=${area}></div>
    </details>`;
}

/** The panel about the selected element. */
export function ElementPanel({ name, graph, live, mayWrite, tick, theme, onClose }) {
  const [page, setPage] = useState(null);
  const [error, setError] = useState(null);
  const [written, setWritten] = useState(0);
  useEffect(() => { setPage(null); setError(null); }, [name]);
  const index = graph.elements.findIndex((element) => element.name === name);
  useEffect(() => {
    if (index < 0) return undefined;
    let isWanted = true;
    const show = (set) => (it) => isWanted && set(it);
    get("/api/element", { name }).then(show(setPage), (it) => isWanted && setError(it.message));
    return () => { isWanted = false; };
  }, [name, index < 0, Math.floor(tick / 2), written]);
  if (index < 0) return html`<p class="notice">The configuration that runs now has no element ${name}.</p>`;
  const element = graph.elements[index];
  const rates = live?.elements[index] ?? {};
  const values = new Map((page?.values ?? []).map((it) => [it.handler, it]));
  return html`
    <section class="element">
      <header>
        <h2>${element.name}</h2>
        <button class="plain" onClick=${onClose} aria-label="Close the element">✕</button>
      </header>
      <p><code>${element.class}</code> ${page?.summary}</p>
      ${element.arguments && html`<pre tabindex="0" aria-label="arguments">${element.arguments}</pre>`}
      ${error && html`<p class="error">${error}</p>`}
      <dl class="figures">
        ${figures(rates).map(([label, text]) => html`<div key=${label}><dt>${label}</dt><dd>${text}</dd></div>`)}
      </dl>
      <${Reasons} reasons=${rates.reasons} />
      <h3>Last ten minutes</h3>
      <${History} element=${name} tick=${tick} theme=${theme} />
      <h3>Handlers</h3>
      <ul class="handlers">
        ${page?.handlers.map((handler) => html`
          <${Handler} key=${handler.name} element=${name} handler=${handler} mayWrite=${mayWrite}
                      value=${values.get(`${name}.${handler.name}`)} onDone=${() => setWritten(written + 1)} />`)}
      </ul>
      <${Manual} name=${element.class} />
    </section>`;
}
