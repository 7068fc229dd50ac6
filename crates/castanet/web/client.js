// Requests to the instance.

const STORED = "castanet-token";

/** An answer that is an error, with its sentence. */
export class RequestError extends Error {
  constructor(status, text) {
    super(text.trim() || `status ${status}`);
    this.status = status;
  }
}

/** What is kept in a storage of the browser; nothing where the user has blocked that. */
export function stored(storage, key) {
  try {
    return window[storage].getItem(key);
  } catch {
    return null;
  }
}

/** Keeps a text in a storage of the browser, if that is allowed. */
export function store(storage, key, text) {
  try {
    window[storage].setItem(key, text);
  } catch { /* It is known until the page is closed. */ }
}

let token = stored("sessionStorage", STORED);
takeToken();

/** Takes the token from the part of the address behind `#`, which browsers keep to themselves, and removes it there;
    returns whether there was one. */
export function takeToken() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const named = parts.get("token");
  if (named === null) return false;
  setToken(named);
  parts.delete("token");
  const rest = parts.toString();
  history.replaceState(null, "", rest ? `#${rest}` : location.pathname);
  return true;
}

/** Names this token from now on. */
export function setToken(text) {
  token = text;
  store("sessionStorage", STORED, text);
}

async function request(path, options) {
  // Other characters cannot stand in a header, nor in a token.
  const isToken = token && /^[!-~]+$/.test(token);
  const headers = isToken ? { authorization: `Bearer ${token}` } : {};
  const signal = AbortSignal.timeout(10_000);
  const answer = await fetch(path, {
    ...options, headers: { ...headers, ...options.headers }, signal, cache: "no-store",
  });
  if (!answer.ok) throw new RequestError(answer.status, await answer.text());
  return answer;
}

function address(path, query = {}) {
  const words = new URLSearchParams(query).toString();
  return words ? `${path}?${words}` : path;
}

/** The JSON at a path. */
export async function get(path, query) {
  return (await request(address(path, query), {})).json();
}

/** The text at a path. */
export async function getText(path, query) {
  return (await request(address(path, query), {})).text();
}

/** Sends JSON to a path; the answer is JSON, too. */
export async function post(path, value) {
  const headers = { "content-type": "application/json" };
  return (await request(path, { method: "POST", headers, body: JSON.stringify(value) })).json();
}
