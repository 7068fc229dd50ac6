// The log: the last lines, and new ones as they come.

import { get } from "./client.js";
import { clock } from "./format.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";

const MOST = 500;

/** The panel of the log of one instance. */
export function LogPanel({ tick }) {
  const [lines, setLines] = useState([]);
  const busy = useRef(false);
  const list = useRef(null);
  const last = lines.at(-1)?.number ?? 0;
  useEffect(() => {
    if (busy.current) return;
    busy.current = true;
    get("/api/log", { after: last }).then((news) => {
      if (news.length > 0) setLines((before) => [...before, ...news].slice(-MOST));
    }, () => {}).finally(() => { busy.current = false; });
  }, [tick]);
  // New lines move the list only for a reader who is at its end.
  const isAtEnd = useRef(true);
  const scroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = list.current;
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < 30;
  };
  useLayoutEffect(() => {
    if (list.current && isAtEnd.current) list.current.scrollTop = list.current.scrollHeight;
  }, [last]);
  if (lines.length === 0) return html`<p class="quiet">Nothing was said so far.</p>`;
  return html`
    <ol class="log" tabindex="0" aria-label="Lines of the log" ref=${list} onScroll=${scroll}>
      ${lines.map((line) => html`
        <li key=${line.number} class=${line.level}>
          <time>${clock(line.time)}</time> <span>${line.text}</span>
        </li>`)}
    </ol>`;
}
