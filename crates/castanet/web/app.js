// The page: its state, and the polling of the instance.

import { get, setToken, store, stored, takeToken } from "./client.js";
import { DropsPanel } from "./drops.js";
import { ElementPanel } from "./element.js";
import { percent, rate, span } from "./format.js";
import { Graph, dropsOf } from "./graph.js";
import { html, render, useEffect, useRef, useState } from "./html.js";
import { allCompounds, foldedAtFirst } from "./layout.js";
import { LogPanel } from "./log.js";
import { Table } from "./table.js";
import { TracePanel } from "./trace.js";

const EVERY = 1000;
const PANELS = [["element", "Element"], ["trace", "Trace"], ["drops", "Drops"], ["log", "Log"]];
const VIEWS = [["graph", "Graph"], ["table", "Table"]];
const THEMES = ["auto", "light", "dark"];

/** The parts of the address behind `#`: what is shown, so that it can be linked to. */
function readHash() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

function writeHash(parts) {
  const known = Object.entries(parts).filter(([, value]) => value);
  const text = new URLSearchParams(known).toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname);
}

/** Whether two versions are of the same configuration of the same instance. */
function isSame(a, b) {
  return a?.started === b?.started && a?.replaced === b?.replaced;
}

/** Polls the instance: its description, its graph, its rates. `tick` counts the rates. */
function useInstance() {
  const [state, setState] = useState({ tick: 0 });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let [isWanted, timer, graph, tick] = [true, 0, null, 0];
    const change = (news) => isWanted && setState((before) => ({ ...before, ...news }));
    const poll = async () => {
      try {
        if (tick % 5 === 0 || !graph) change({ instance: await get("/api/instance") });
        const live = await get("/api/live");
        if (!graph || (live && !isSame(live.version, graph.version))) {
          graph = await get("/api/graph");
          change({ instance: await get("/api/instance") });
        }
        const isCurrent = live && isSame(live.version, graph.version);
        tick += 1;
        change({ graph, live: isCurrent ? live : null, tick, error: null, isRefused: false });
      } catch (error) {
        if (error.status === 401) {
          change({ isRefused: true, isWrong: attempt > 0, error: null });
          return;
        }
        graph = null;
        change({ error: error.status ? error.message : "The instance does not answer." });
      }
      if (isWanted) timer = setTimeout(poll, document.hidden ? EVERY * 5 : EVERY);
    };
    poll();
    return () => { isWanted = false; clearTimeout(timer); };
  }, [attempt]);
  return { ...state, again: () => setAttempt(attempt + 1) };
}

/** Tabs. The arrow keys go from one to the next. */
function Tabs({ label, tabs, chosen, onChoose, controls }) {
  const row = useRef(null);
  const key = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const index = (tabs.findIndex(([id]) => id === chosen) + step + tabs.length) % tabs.length;
    onChoose(tabs[index][0]);
    row.current.children[index].focus();
  };
  return html`
    <div class="tabs" role="tablist" aria-label=${label} ref=${row} onKeyDown=${key}>
      ${tabs.map(([id, title]) => html`
        <button key=${id} id=${`tab-${id}`} role="tab" aria-selected=${id === chosen ? "true" : "false"}
                aria-controls=${controls} tabindex=${id === chosen ? 0 : -1} onClick=${() => onChoose(id)}>${title}</button>`)}
    </div>`;
}

function Totals({ graph, live }) {
  if (!graph || !live) return null;
  const received = graph.elements.reduce((sum, it, index) =>
    sum + (it.inputs === 0 && it.outputs > 0 ? live.elements[index]?.packets_per_second ?? 0 : 0), 0);
  const drops = live.elements.reduce((sum, it) => sum + dropsOf(it).drops_per_second, 0);
  return html`
    <span>in <b>${rate(received)}</b></span>
    <span class=${drops > 0 ? "error" : ""}>drops <b>${rate(drops)}</b></span>
    ${live.workers.map((load, worker) => html`
      <span class="load" key=${worker}>worker ${worker}
        <span class="meter" aria-hidden="true"><i style=${{ width: `${Math.round(load * 100)}%` }}></i></span>
        <b>${percent(load)}</b></span>`)}`;
}

function Header({ instance, graph, live, error, theme, onTheme }) {
  return html`
    <header class="top">
      <h1>${instance?.name ?? "castanet"}</h1>
      <span class=${error ? "state lost" : "state"} role="status">${error ? "not connected" : live ? "live" : "starting"}</span>
      ${instance && html`
        <span class="quiet">${instance.configuration}, up ${span(instance.uptime)}, ${instance.elements} elements</span>`}
      <${Totals} graph=${graph} live=${live} />
      <span class="quiet version">castanet ${instance?.version}</span>
      <button class="plain theme" onClick=${onTheme} aria-label=${`colours: ${theme}`}>${{ auto: "◐", light: "☀", dark: "☾" }[theme]}</button>
    </header>`;
}

/** Asks for the token. */
function TokenForm({ onToken, isWrong }) {
  const [text, setText] = useState("");
  const submit = (event) => {
    event.preventDefault();
    setToken(text.trim());
    onToken();
  };
  return html`
    <main class="token">
      <h1>Castanet</h1>
      <p>This instance is shown to those who know its token: <code>--web-token FILE</code>, or the address that it printed at its start.</p>
      <form onSubmit=${submit}>
        <label>Token <input type="password" autocomplete="current-password" value=${text} onInput=${(event) => setText(event.target.value)} /></label>
        <button class="main">Show</button>
        ${isWrong && html`<p class="error" role="alert">This is not the token of this instance.</p>`}
      </form>
    </main>`;
}

function useTheme() {
  const [theme, setTheme] = useState(() => stored("localStorage", "castanet-theme") ?? "auto");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const [isDark, setDark] = useState(system.matches);
  useEffect(() => {
    const change = () => setDark(system.matches);
    system.addEventListener("change", change);
    return () => system.removeEventListener("change", change);
  }, []);
  document.documentElement.dataset.theme = theme === "auto" ? (isDark ? "dark" : "light") : theme;
  const next = () => {
    const other = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    store("localStorage", "castanet-theme", other);
    setTheme(other);
  };
  return [theme, `${theme} ${isDark}`, next];
}

/** The folded compounds: those that the user has folded, as long as they are there. */
function useFolded(graph) {
  const [folded, setFolded] = useState(null);
  const started = useRef(null);
  useEffect(() => {
    if (!graph) return;
    const isOther = started.current !== graph.version.started;
    started.current = graph.version.started;
    setFolded((before) => {
      if (isOther || !before) return foldedAtFirst(graph);
      const there = allCompounds(graph);
      return new Set([...before].filter((it) => there.has(it)));
    });
  }, [graph]);
  return [folded, setFolded];
}

function App() {
  const { instance, graph, live, tick, error, isRefused, isWrong, again } = useInstance();
  const [shown, setShown] = useState(() => ({ view: "graph", panel: "element", ...readHash() }));
  const [folded, setFolded] = useFolded(graph);
  const [route, setRoute] = useState(null);
  const [theme, look, nextTheme] = useTheme();
  const repeat = useRef(again);
  repeat.current = again;
  useEffect(() => {
    const change = () => {
      if (takeToken()) repeat.current();
      setShown((before) => ({ ...before, ...readHash() }));
    };
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  useEffect(() => writeHash(shown), [shown]);
  useEffect(() => { document.title = `${instance?.name ?? "not connected"} · Castanet`; }, [instance?.name]);

  if (isRefused) return html`<${TokenForm} onToken=${again} isWrong=${isWrong} />`;
  const show = (news) => setShown((before) => ({ ...before, ...news }));
  const select = (element) => show({ element, panel: "element" });
  const panels = {
    element: () => (shown.element
      ? html`<${ElementPanel} name=${shown.element} graph=${graph} live=${live} mayWrite=${instance?.may_write} tick=${tick}
                              theme=${look} onClose=${() => show({ element: "" })} />`
      : html`<p class="quiet">Choose an element: its rates, its history, its handlers and its manual page are shown here.</p>`),
    drops: () => html`<${DropsPanel} graph=${graph} live=${live} tick=${tick} onSelect=${select} />`,
    log: () => html`<${LogPanel} key=${graph?.version.started} tick=${tick} />`,
    trace: () => null,
  };
  return html`
    <${Header} instance=${instance} graph=${graph} live=${live} error=${error} theme=${theme} onTheme=${nextTheme} />
    ${error && html`<p class="lost" role="alert">${error}</p>`}
    ${graph && folded && html`
      <main class="split">
        <section class="left">
          <${Tabs} label="View" tabs=${VIEWS} chosen=${shown.view} onChoose=${(view) => show({ view })} controls="view" />
          <div id="view" class="view" role="tabpanel" aria-labelledby=${`tab-${shown.view}`}>
            ${shown.view === "table"
              ? html`<${Table} graph=${graph} live=${live} selected=${shown.element} onSelect=${select} />`
              : html`<${Graph} graph=${graph} live=${live} folded=${folded} setFolded=${setFolded}
                               selected=${shown.element} onSelect=${select} route=${route} />`}
          </div>
        </section>
        <aside class="right" aria-label="Details">
          <${Tabs} label="Details" tabs=${PANELS} chosen=${shown.panel} onChoose=${(panel) => show({ panel })} controls="panel" />
          <div id="panel" class="panel" role="tabpanel" aria-labelledby=${`tab-${shown.panel}`} tabindex="0">
            ${(Object.hasOwn(panels, shown.panel) ? panels[shown.panel] : panels.element)()}
            <div hidden=${shown.panel !== "trace"}>
              <${TracePanel} graph=${graph} onRoute=${setRoute} onSelect=${select} />
            </div>
          </div>
        </aside>
      </main>`}`;
}

render(html`<${App} />`, document.getElementById("app"));
