// Templates bound to Preact, and its hooks.

import { h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { render };
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState }
  from "./vendor/preact_hooks.js";

/** Makes elements of the page from a template. */
export const html = htm.bind(h);
