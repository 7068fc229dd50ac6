// The log: the last lines, and new ones as they come.

import { get } from "./client.js";
import { clock } from "./format.js";
import { html, useEffect, useRef, useState } from "./html.js";

const MOST = 500;

/** The panel of the log. */
export function LogPanel({ tick }) {
  const [lines, setLines] = useState([]);
  const busy = useRef(false);
  const end = useRef(null);
  useEffect(() => {
    if (busy.current) return;
    busy.current = true;
    get("/api/log", { after: lines.at(-1)?.number ?? 0 }).then((news) => {
      if (news.length > 0) setLines((before) => [...before, ...news].slice(-MOST));
    }, () => {}).finally(() => { busy.current = false; });
  }, [tick]);
  useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [lines.length]);
  if (lines.length === 0) return html`<p class="quiet">Nothing was said so far.</p>`;
  return html`
    <ol class="log" tabindex="0" aria-label="Lines of the log">
      ${lines.map((line) => html`
        <li key=${line.number} class=${line.level}>
          <time>${clock(line.time)}</time> <span>${line.text}</span>
        </li>`)}
      <li ref=${end} aria-hidden="true"></li>
    </ol>`;
}
