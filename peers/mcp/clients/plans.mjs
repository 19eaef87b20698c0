// What the JavaScript clients have in common: the plans they are given, the answers in them, and the reports they print.
//
// Plans are a JSON array on stdin, each one connection to one server:
//   plan:   { name, server: [command, …arguments], env: {…}, url?, era, elicitation: boolean, calls: [call, …], together? }
//   url:    where a server listens; without one, the server is started, and spoken to over stdio
//   era:    "legacy", "2025-06-18", "auto" or "modern"
//   call:   { name, tool, arguments, answer?, givesUp? }, made one after the other, or all together; one that givesUp
//           does so at its first progress
//   answer: { action, content?, afterMs? }, { throws: words }, { never: true }, or { aborts: true }, which gives up the
//           call that asks; without one, questions are declined
// A report is one line of JSON on stdout for each plan, as they end:
//   { name, protocolVersion, tools, calls: [line, …], closeMs }, or { name, refused: error } without a connection
//   line:   { name, asked: [params, …], withdrawn, progress, result or error: { code, message, data } }

const AT_ONCE = 2;

/** Carries out the plans; `connect(plan, onQuestion)` gives `{ protocolVersion, tools, call(call, options), close() }`. */
export async function carryOut(connect) {
  let input = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) input += chunk;
  const plans = JSON.parse(input);
  const work = async () => {
    for (let plan = plans.shift(); plan; plan = plans.shift()) {
      process.stdout.write(`${JSON.stringify({ name: plan.name, ...(await reportOf(plan, connect)) })}\n`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

async function reportOf(plan, connect) {
  const begun = [];
  let server;
  try {
    server = await connect(plan, (params, signal) => answer(askedBy(begun, params), params, signal));
  } catch (error) {
    return { refused: fault(error) };
  }
  const act = async (call) => {
    const line = { name: call.name, asked: [], withdrawn: false, progress: 0 };
    const abort = new AbortController();
    begun.push({ call, line, abort });
    const onprogress = () => {
      line.progress++;
      if (call.givesUp) abort.abort("aborted");
    };
    try {
      line.result = await server.call(call, { signal: abort.signal, onprogress });
    } catch (error) {
      line.error = fault(error);
    }
  };
  if (plan.together) await Promise.all(plan.calls.map(act));
  else for (const call of plan.calls) await act(call);
  const before = performance.now();
  await server.close();
  const closeMs = Math.round(performance.now() - before);
  const calls = begun.map(({ line }) => line);
  return { protocolVersion: server.protocolVersion, tools: server.tools, calls, closeMs };
}

/** The call that a question belongs to: the last one with its choices, or the last one of all. */
function askedBy(begun, { requestedSchema }) {
  const { deviceId } = requestedSchema.properties;
  const choices = JSON.stringify(deviceId?.oneOf?.map((choice) => choice.const) ?? deviceId?.enum);
  const isIts = ({ call }) => (deviceId ? JSON.stringify(call.arguments.offer) === choices : call.tool === "ask");
  return begun.findLast(isIts) ?? begun.at(-1);
}

async function answer({ call, line, abort }, params, signal) {
  line.asked.push(params);
  const { throws, never, aborts, afterMs, ...result } = call.answer ?? { action: "decline" };
  if (throws) throw new Error(throws);
  if (afterMs) await new Promise((resolve) => setTimeout(resolve, afterMs));
  if (never || aborts) {
    await new Promise((_, reject) => {
      signal.addEventListener("abort", () => {
        line.withdrawn = true;
        reject(new Error("withdrawn"));
      });
      // Last, because it may withdraw the question at once.
      if (aborts) abort.abort("aborted");
    });
  }
  return result;
}

function fault(error) {
  return { code: error.code ?? null, message: error.message ?? String(error), data: error.data ?? null };
}
