// Questions to the JSON API, and the binary form in which arrays come back.

// What the server says is wrong, as a sentence.
export class AskError extends Error {
  isTold = true;
}

const post = async (path, body, signal) => {
  const answer = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
  }).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new AskError("The server does not answer. Is it still running?");
  });
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new AskError(said.error ?? `The server answered ${answer.status}.`);
};

const place = (run, verb) => `/api/runs/${encodeURIComponent(run)}/${verb}`;

export const listRuns = async () => {
  const answer = await fetch("/api/runs");
  if (!answer.ok) throw new AskError((await answer.json().catch(() => ({}))).error ?? "The runs cannot be listed.");
  return answer.json();
};

export const ask = async (run, verb, body, signal) => (await post(place(run, verb), body, signal)).json();

// Every line of an answer as it comes; leaving the loop ends the request, and the server stops writing.
export const stream = async function* (run, verb, body, signal) {
  const reader = (await post(place(run, verb), body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      const lines = (rest + (value ?? "")).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const found = JSON.parse(line);
        if (found.error) throw new AskError(found.error);
        yield found;
      }
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
};

// JSON whose arrays lie behind it as bytes: see regard/serve/packing.py.
export const decode = (buffer) => {
  const length = new DataView(buffer).getUint32(0, true);
  const start = 4 + length;
  return JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)), (_, value) =>
    value && typeof value === "object" && "at" in value && "kind" in value && "shape" in value
      ? { ...value, bytes: new Uint8Array(buffer, start + value.at, value.n) }
      : value);
};

export const look = async (body, signal) => decode(await (await post("/api/look", body, signal)).arrayBuffer());

// One head of the attention view that was not sent with it.
export const fetchHead = async (run, body, signal) => decode(await (await post(place(run, "head"), body, signal)).arrayBuffer());

// A view as a picture file, drawn by the server.
export const drawView = async (body) => (await post("/api/draw", body)).blob();

// How many questions wait for views that take seconds.
export const waitsBefore = async (signal) => (await (await fetch("/api/counts", { signal })).json()).waiting_for_slow_views;
