// The part of a drawing that is seen: moved by dragging, zoomed by the wheel, two fingers or buttons.

import { useCallback, useEffect, useRef, useState } from "./html.js";

const CLOSEST = 120;
/** Space around what is brought into view. */
const MARGIN = 18;

/** Units of the drawing for a pixel beyond which texts cannot be read. */
const COARSEST = 1.45;

/** The seen part of a drawing, and how it changes. `svg` is a ref to the drawing; `area` is its size in pixels. */
export function useViewBox(svg, { width, height }, area) {
  const [box, setBox] = useState(null);
  const pointers = useRef(new Map());
  const moved = useRef(false);

  const part = (scale) => {
    const [w, h] = [area.width * scale, area.height * scale];
    // A drawing that does not fit is shown from its beginning.
    return { x: Math.min((width - w) / 2, 0), y: Math.min((height - h) / 2, 0), w, h };
  };
  /** The whole drawing. A small one is not blown up. */
  const whole = Math.max(width / Math.max(area.width, 1), height / Math.max(area.height, 1), 1);
  const first = () => part(Math.min(whole, COARSEST));
  const fit = () => setBox(part(whole));
  useEffect(() => setBox(null), [width, height]);

  /** Zooms by a factor; the point stays where it is, by default the middle. */
  const zoom = useCallback((factor, point) => setBox((before) => {
    const box = before ?? first();
    const w = Math.min(Math.max(box.w * factor, CLOSEST), Math.max(width, box.w) * 4);
    const by = w / box.w;
    const { x, y } = point ?? { x: box.x + box.w / 2, y: box.y + box.h / 2 };
    return { x: x - (x - box.x) * by, y: y - (y - box.y) * by, w, h: box.h * by };
  }), [area, width, height]);

  /** The point of the drawing at a place of the window. */
  const pointAt = (event) => {
    const matrix = svg.current.getScreenCTM().inverse();
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
  };

  const move = (dx, dy) => setBox((before) => {
    const box = before ?? first();
    const scale = box.w / svg.current.getBoundingClientRect().width;
    return { ...box, x: box.x - dx * scale, y: box.y - dy * scale };
  });

  /** Moves the drawing so that a node is seen; the upper left part of one that is too large. */
  const reveal = (node) => setBox((before) => {
    const box = before ?? first();
    const near = (start, size, own, length) => {
      if (own - MARGIN < start || length + 2 * MARGIN > size) return own - MARGIN;
      return own + length + MARGIN > start + size ? own + length + MARGIN - size : start;
    };
    const { width: w, height: h } = node;
    const [x, y] = [near(box.x, box.w, node.x - w / 2, w), near(box.y, box.h, node.y - h / 2, h)];
    return x === box.x && y === box.y ? before : { ...box, x, y };
  });

  const handlers = {
    onPointerDown(event) {
      pointers.current.set(event.pointerId, event);
      moved.current = false;
    },
    onPointerMove(event) {
      const last = pointers.current.get(event.pointerId);
      if (!last) return;
      const [dx, dy] = [event.clientX - last.clientX, event.clientY - last.clientY];
      if (!moved.current && Math.hypot(dx, dy) < 4) return;
      if (!moved.current) svg.current.setPointerCapture(event.pointerId);
      moved.current = true;
      const others = [...pointers.current.values()].filter((it) => it.pointerId !== event.pointerId);
      if (others.length === 1) {
        const distance = (it) => Math.hypot(it.clientX - others[0].clientX, it.clientY - others[0].clientY);
        zoom(Math.max(distance(last), 1) / Math.max(distance(event), 1), pointAt(others[0]));
      } else {
        move(dx, dy);
      }
      pointers.current.set(event.pointerId, event);
    },
    onPointerUp: (event) => pointers.current.delete(event.pointerId),
    onPointerCancel: (event) => pointers.current.delete(event.pointerId),
    onPointerLeave: (event) => pointers.current.delete(event.pointerId),
    // The end of a move is no click.
    onClickCapture(event) {
      if (moved.current) event.stopPropagation();
      moved.current = false;
    },
  };

  // Wheels are listened to here: the page must not scroll at the same time.
  useEffect(() => {
    const wheel = (event) => {
      event.preventDefault();
      zoom(Math.exp(event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), pointAt(event));
    };
    const drawing = svg.current;
    drawing?.addEventListener("wheel", wheel, { passive: false });
    return () => drawing?.removeEventListener("wheel", wheel);
  }, [zoom]);

  const seen = box ?? first();
  return { viewBox: `${seen.x} ${seen.y} ${seen.w} ${seen.h}`, zoom, fit, reveal, handlers };
}
