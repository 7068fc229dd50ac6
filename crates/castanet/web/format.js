// Figures as text.

const PREFIXES = ["", "k", "M", "G", "T"];

/** A figure with three digits and a prefix: 12.3 k. */
export function short(figure) {
  if (!figure) return "0";
  let prefix = 0;
  while (Math.abs(figure) >= 999.5 && prefix < PREFIXES.length - 1) {
    figure /= 1000;
    prefix += 1;
  }
  const digits = Math.abs(figure) < 9.995 ? 2 : Math.abs(figure) < 99.95 ? 1 : 0;
  const text = figure.toFixed(prefix === 0 && Number.isInteger(figure) ? 0 : digits);
  return prefix === 0 ? text : `${text} ${PREFIXES[prefix]}`;
}

/** A rate of packets. */
export function rate(packets) {
  return `${short(packets)}/s`;
}

/** A rate of bytes, in bits a second. */
export function bits(bytes) {
  if (bytes === undefined) return "";
  const figure = short(bytes * 8);
  return figure.includes(" ") ? `${figure}bit/s` : `${figure} bit/s`;
}

/** A whole number, in groups of three digits. */
export function whole(count) {
  return (count ?? 0).toLocaleString("en").replaceAll(",", "\u202f");
}

/** A time in nanoseconds, in the unit that fits. */
export function time(nanoseconds) {
  if (nanoseconds === undefined || nanoseconds === null) return "";
  if (nanoseconds < 1e3) return `${nanoseconds < 100 ? +nanoseconds.toFixed(1) : Math.round(nanoseconds)} ns`;
  if (nanoseconds < 1e6) return `${(nanoseconds / 1e3).toFixed(1)} µs`;
  if (nanoseconds < 1e9) return `${(nanoseconds / 1e6).toFixed(1)} ms`;
  return `${(nanoseconds / 1e9).toFixed(1)} s`;
}

/** A share of one as a percentage. */
export function percent(share) {
  return share === undefined ? "" : `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

/** A time span in seconds: 3 d 4 h. */
export function span(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, length]) => seconds >= length);
  if (first < 0) return "0 s";
  const [name, length] = units[first];
  const text = `${Math.floor(seconds / length)} ${name}`;
  const next = units[first + 1];
  return next ? `${text} ${Math.floor((seconds % length) / next[1])} ${next[0]}` : text;
}

/** The time of day of nanoseconds since 1970, with milliseconds. */
export function clock(nanoseconds) {
  const date = new Date(nanoseconds / 1e6);
  const millis = String(date.getMilliseconds()).padStart(3, "0");
  return `${date.toLocaleTimeString("en-GB")}.${millis}`;
}

/** A text with so many characters at most. */
export function cut(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
