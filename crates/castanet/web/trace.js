// Traces: the next packets that match, what each element did to them, and their route through the graph.

import { post } from "./client.js";
import { clock, time } from "./format.js";
import { html, useEffect, useRef, useState } from "./html.js";

const EVERY = 250;
/** Milliseconds without a step after which packets that elements keep are not waited for any more. */
const PATIENCE = 3000;

/** By word of the new text: whether it is none of the words that both texts have in the same order. */
function newWords(before, after) {
  const [old, words] = [before.split(" "), after.split(" ")];
  const common = Array.from({ length: old.length + 1 }, () => new Uint16Array(words.length + 1));
  for (let a = old.length - 1; a >= 0; a -= 1) {
    for (let b = words.length - 1; b >= 0; b -= 1) {
      common[a][b] = old[a] === words[b] ? common[a + 1][b + 1] + 1 : Math.max(common[a + 1][b], common[a][b + 1]);
    }
  }
  const isNew = new Array(words.length).fill(true);
  let [a, b] = [0, 0];
  while (a < old.length && b < words.length) {
    if (old[a] === words[b]) isNew[b] = false;
    if (old[a] === words[b] || common[a + 1][b] < common[a][b + 1]) {
      if (old[a] === words[b]) a += 1;
      b += 1;
    } else {
      a += 1;
    }
  }
  return words.map((word, index) => ({ word, isNew: isNew[index] }));
}

/** Annotations that differ, as text. */
function annotations(before, after) {
  const names = { paint: "paint", dst: "destination", device: "device", packet_type: "packet type", network: "network header" };
  return Object.entries(names).filter(([key]) => before[key] !== after[key])
    .map(([key, name]) => `${name} ${before[key] ?? "none"} → ${after[key] ?? "none"}`);
}

/** A packet as it left an element: its text if that changed, with marks. */
function Change({ before, after }) {
  const changed = before.text !== after.text;
  const bytes = !changed && before.bytes !== after.bytes;
  const notes = annotations(before, after);
  return html`
    ${changed && html`
      <code class="packet">${newWords(before.text, after.text).map(({ word, isNew }) => (isNew ? html`<mark>${word}</mark> ` : `${word} `))}</code>`}
    ${bytes && html`<span class="quiet note">bytes changed that the line does not show</span>`}
    ${notes.length > 0 && html`<span class="quiet note">annotations: ${notes.join(", ")}</span>`}`;
}

function Drop({ reason, meaning }) {
  return html`<span class="error">dropped: ${reason}. ${meaning}</span>`;
}

function Result({ before, result }) {
  switch (result.result) {
    case "sent": return html`<${Change} before=${before} after=${result.packet} />`;
    case "dropped": return html`<${Drop} ...${result} />`;
    case "consumed": return html`<span class="good">ends here</span>`;
    default: return html`<span class="quiet">kept</span>`;
  }
}

function Step({ step, onSelect }) {
  const name = html`<button class="plain" onClick=${() => onSelect(step.element)}>${step.element}</button> <span class="quiet">${step.class}</span>`;
  switch (step.step) {
    case "entered":
      return html`<li>${name} <code class="packet">${step.packet.text}</code></li>`;
    case "visited": {
      const ports = step.results.filter((it) => it.result === "sent").map((it) => `[${it.output}]`).join(" ");
      return html`
        <li>
          ${name} <span class="quiet">[${step.input}]${ports && ` → ${ports}`} · ${time(step.nanoseconds)}</span>
          ${step.results.map((result, index) => html`<${Result} key=${index} before=${step.before} result=${result} />`)}
        </li>`;
    }
    case "left": return html`<li>${name} <span class="quiet">lets it go</span></li>`;
    case "dropped": return html`<li>${name} <${Drop} ...${step} /></li>`;
    default: return null;
  }
}

/** The route of a packet, for the graph. */
export function routeOf(steps) {
  return steps.filter((step) => step.step !== "finished").map((step) => {
    const results = step.results ?? [];
    const outputs = step.step === "entered" ? [step.output] : results.filter((it) => it.result === "sent").map((it) => it.output);
    const isDrop = step.step === "dropped" || results.some((it) => it.result === "dropped");
    return { element: step.element, outputs: step.step === "left" ? [0] : outputs, isDrop };
  });
}

/** How a packet ended, in a word. */
function fate(steps) {
  const drop = steps.flatMap((step) => (step.step === "dropped" ? [step] : (step.results ?? []).filter((it) => it.result === "dropped")));
  if (drop.length > 0) return { text: `dropped: ${drop[0].reason}`, kind: "error" };
  if (!steps.some((step) => step.step === "finished")) return { text: "not at its end", kind: "quiet" };
  const last = steps.findLast((step) => step.step === "visited" || step.step === "entered");
  return { text: `ended at ${last?.element}`, kind: "good" };
}

function Packet({ number, steps, isShown, onShow, onSelect }) {
  const first = steps.find((step) => step.step === "entered") ?? steps[0];
  const end = fate(steps);
  return html`
    <li class=${isShown ? "traced shown" : "traced"}>
      <button class="plain" aria-expanded=${isShown ? "true" : "false"} onClick=${() => onShow(number)}>
        <b>${number}</b> <span class="quiet">${clock(first.time)}</span>
        <code class="packet">${first.packet?.text ?? first.before?.text ?? ""}</code>
        <span class=${end.kind}>${end.text}</span>
      </button>
      ${isShown && html`<ol class="steps">${steps.map((step, index) => html`<${Step} key=${index} step=${step} onSelect=${onSelect} />`)}</ol>`}
    </li>`;
}

/** Follows a trace until its packets have ended; `packets` are steps by number of the packet. */
function useTrace() {
  const [packets, setPackets] = useState(new Map());
  const [state, setState] = useState({ isRunning: false });
  const session = useRef(null);

  const take = (answer) => {
    setPackets((before) => {
      const after = new Map(before);
      for (const step of answer.steps) after.set(step.number, [...(after.get(step.number) ?? []), step]);
      return after;
    });
    setState((before) => ({ ...before, missed: answer.missed, lost: answer.lost_steps }));
  };
  const stop = async () => {
    const number = session.current;
    session.current = null;
    setState((before) => ({ ...before, isRunning: false }));
    if (number !== null) {
      try {
        take(await post("/api/trace", { command: "stop", session: number }));
      } catch { /* The router has gone, and its traces. */ }
    }
  };
  const follow = async (number) => {
    let [begun, ended, last] = [0, 0, Date.now()];
    while (session.current === number) {
      const answer = await post("/api/trace", { command: "next", session: number });
      if (session.current !== number) return;
      take(answer);
      if (answer.steps.length > 0) last = Date.now();
      begun = answer.begun;
      ended += answer.steps.filter((step) => step.step === "finished").length;
      const isQuiet = ended >= begun || Date.now() - last > PATIENCE;
      if (answer.remaining === 0 && isQuiet) break;
      await new Promise((done) => setTimeout(done, EVERY));
    }
    // Another trace may have begun meanwhile.
    if (session.current === number) await stop();
  };
  const start = async (query) => {
    await stop();
    setPackets(new Map());
    setState({ isRunning: true });
    let number = null;
    try {
      ({ session: number } = await post("/api/trace", { command: "start", query }));
      session.current = number;
      await follow(number);
    } catch (error) {
      if (session.current !== number) return;
      session.current = null;
      setState({ isRunning: false, error: error.message });
    }
  };
  useEffect(() => () => { stop(); }, []);
  return { packets, state, start, stop };
}

/** The panel of traces. `onRoute` gets the route of the packet that is shown. */
export function TracePanel({ graph, onRoute, onSelect }) {
  const { packets, state, start, stop } = useTrace();
  const [pattern, setPattern] = useState("");
  const [tcpdump, setTcpdump] = useState("");
  const [from, setFrom] = useState("");
  const [count, setCount] = useState(3);
  const [shown, setShown] = useState(null);
  const sources = graph.elements.filter((it) => it.inputs === 0 && it.outputs > 0);

  // The first packet is shown by itself.
  const first = packets.size > 0 ? packets.keys().next().value : null;
  const number = shown ?? first;
  const steps = number === null ? undefined : packets.get(number);
  useEffect(() => onRoute(steps ? routeOf(steps) : null), [number, steps?.length]);

  const submit = (event) => {
    event.preventDefault();
    setShown(null);
    const query = { pattern, packets: Number(count), snap_len: 512 };
    if (tcpdump) query.tcpdump = tcpdump;
    if (from) query.from = from;
    start(query);
  };
  const input = (set) => ({ onInput: (event) => set(event.target.value) });
  return html`
    <section class="trace">
      <form onSubmit=${submit}>
        <label>Packets, as a pattern of IPFilter
          <input name="pattern" value=${pattern} ...${input(setPattern)} placeholder="all, icmp, dst host 10.0.0.7 && tcp" /></label>
        <label>and as an expression of tcpdump
          <input name="tcpdump" value=${tcpdump} ...${input(setTcpdump)} placeholder="arp" /></label>
        <div class="row">
          <label>from
            <select name="from" value=${from} onChange=${(event) => setFrom(event.target.value)}>
              <option value="">all sources</option>
              ${sources.map((it) => html`<option key=${it.name} value=${it.name}>${it.name}</option>`)}
            </select></label>
          <label>number <input name="count" type="number" min="1" max="100" value=${count} ...${input(setCount)} /></label>
          <button class="main">Trace</button>
          ${state.isRunning && html`<button type="button" onClick=${stop}>Stop</button>`}
        </div>
      </form>
      <div aria-live="polite">
        ${state.error && html`<p class="error">${state.error}</p>`}
        ${state.isRunning && packets.size === 0 && html`<p class="quiet">Waiting for packets.</p>`}
        ${!state.isRunning && packets.size === 0 && !state.error && html`
          <p class="quiet">The next packets that match go alone through the graph, and each step is shown. All others go on as before.</p>`}
        ${state.lost > 0 && html`<p class="quiet">${state.lost} steps came too fast to be fetched.</p>`}
        ${state.missed > 0 && html`<p class="quiet">${state.missed} packets came too fast to be looked at.</p>`}
      </div>
      <ol class="packets">
        ${[...packets].map(([own, its]) => html`
          <${Packet} key=${own} number=${own} steps=${its} isShown=${own === number} onShow=${setShown} onSelect=${onSelect} />`)}
      </ol>
    </section>`;
}
