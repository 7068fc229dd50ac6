// Templates bound to Preact, and its hooks.

import { Component, h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export { render };
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState }
  from "./vendor/preact_hooks.js";

/** Makes elements of the page from a template. */
export const html = htm.bind(h);

/** A component that is drawn again only when `isSame` says that its properties have changed. */
export function memo(draw, isSame) {
  return class extends Component {
    shouldComponentUpdate(next) {
      return !isSame(this.props, next);
    }
    render(properties) {
      return h(draw, properties);
    }
  };
}
