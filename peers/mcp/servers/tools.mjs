// What the JavaScript servers have in common: the tools, their results, and the witness that writes every call down.

import { appendFileSync, readFileSync } from "node:fs";

export const tools = JSON.parse(readFileSync(new URL("tools.json", import.meta.url), "utf8"));

/** The code of the error that `fail` ends in. No code of JSON-RPC or MCP, so nobody may take it for one. */
const FAILURE = { code: -31999, message: "the tool failed", data: { reason: "asked to", tries: 1 } };

/** The question that `ask` puts to the client. */
export const QUESTION = {
  message: "Go on?",
  requestedSchema: { type: "object", properties: { goOn: { type: "boolean" } }, required: ["goOn"] },
};

/**
 * What a call of a tool comes to. `fault` makes an error of the SDK's, `progress` tells how far the call has come, `signal`
 * says when it is given up, and `ask` puts the question in the way of its era and gives the result.
 */
export async function called({ name, arguments: passed }, { fault, progress, signal, ask }) {
  const given = passed ?? {};
  switch (name) {
    case "echo":
      return echoed(given);
    case "fail":
      throw fault(FAILURE.code, FAILURE.message, FAILURE.data);
    case "count":
      for (let step = 1; step <= given.steps; step++) {
        await progress({ progress: step, total: given.steps });
        await apart();
      }
      return text(`counted to ${given.steps}`);
    case "wait":
      await progress({ progress: 1 });
      return waited(given, signal);
    case "ask":
      return ask();
    case "tap":
      return tapped(given);
    default:
      throw fault(-32602, `no tool ${name}`);
  }
}

/** Writes one call into the witness, the file that the command line names, before anything else happens. */
export function witness(tool, given) {
  appendFileSync(process.argv[2], `${JSON.stringify({ tool, arguments: given ?? null })}\n`);
}

/** The result of `echo`: an unusual one, so that what gets lost on the way shows. */
const echoed = (given) => ({
  _meta: { "example.test/vendor": { kept: true } },
  content: [
    { type: "text", text: String(given.text), annotations: { audience: ["user"], priority: 0.5 } },
    { type: "resource_link", uri: "example://one", name: "one" },
  ],
  structuredContent: given,
});

/** The result of `tap`: a refusal that names candidates, unless the device was named. */
function tapped(given) {
  if (Object.hasOwn(given, "deviceId")) return text(`tapped on ${given.deviceId}`);
  const candidates = given.offer.map((deviceId) => ({ deviceId, platform: "android" }));
  const refusal = {
    success: false,
    error: `${candidates.length} devices match (code ambiguous_device_target). Pass deviceId.`,
    code: "ambiguous_device_target",
    candidates,
    retryable: false,
  };
  return { ...text(JSON.stringify(refusal)), isError: true };
}

/** Waits until the call is given up, and writes that into the witness too. */
async function waited(given, signal) {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  witness("wait, given up", given);
  return text("nobody reads this");
}

export const text = (words) => ({ content: [{ type: "text", text: words }] });

/** Keeps progress and result apart: a client that reads both at once may drop the progress of a call that is over. */
const apart = () => new Promise((resolve) => setTimeout(resolve, 10));
