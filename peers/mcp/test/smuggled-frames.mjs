// Frames in which a parser less strict than another finds a call that the other does not see, or another call.
//
// Each is built around a call of `echo` in one era. `text` stands for the frame's bytes, one line without its end.

const VERSION = "2026-07-28";
const MODERN = {
  _meta: {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": { name: "smuggler", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
  },
};

/** A request as text, its params as the era wants them. */
export function request(id, method, params, isModern) {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, ...(isModern ? MODERN : {}) } });
}

/** The frames of one era: `[what it is, (id) => text or bytes]`, every one of which is answered with -32600. */
export function smuggled(isModern) {
  const call = (id) => request(id, "tools/call", { name: "echo", arguments: { text: "smuggled" } }, isModern);
  const harmless = (id) => request(id, "tools/list", {}, isModern);
  /** The call with one piece of its text replaced; the piece has to be there. */
  const with_ = (piece, other) => (id) => {
    const text = call(id);
    if (!text.includes(piece)) throw new Error(`no ${piece} in ${text}`);
    return text.replace(piece, () => other);
  };
  const inFrame = (more) => with_('{"jsonrpc"', `{${more},"jsonrpc"`);
  const inParams = (more) => with_('"params":{', `"params":{${more},`);
  const METHOD = '"method":"tools/call"';
  const NAME = '"name":"echo"';
  const ARGUMENTS = '"arguments":{"text":"smuggled"}';
  return [
    ["a batch of one", (id) => `[${call(id)}]`],
    ["a batch of two", (id) => `[${call(id)},${call(`${id}b`)}]`],
    ["a batch behind a harmless request", (id) => `[${harmless(id)},${call(`${id}b`)}]`],
    ["a batch in a batch", (id) => `[[${call(id)}]]`],
    ["an empty batch", () => "[]"],
    ["two requests on a line", (id) => `${harmless(id)}${call(`${id}b`)}`],
    ["two requests, a tab between", (id) => `${harmless(id)}\t${call(`${id}b`)}`],
    ["two requests, a carriage return between", (id) => `${harmless(id)}\r${call(`${id}b`)}`],
    ["a request within another, on a line of its own to whoever ends lines with a carriage return", (id) =>
      harmless(id).replace('"params":{', () => `"params":{"x":\r${call(`${id}b`)}\r${isModern ? "," : ""}`)],
    ["a request with a tail", (id) => `${call(id)} x`],
    ["a request in a string", (id) => JSON.stringify(call(id))],
    ["a NUL before the request", (id) => `\u0000${call(id)}`],
    ["a NUL after the request", (id) => `${call(id)}\u0000`],
    ["no end", (id) => call(id).slice(0, -1)],
    ["a trailing comma", (id) => call(id).replace(/}}$/, "}},").replace(/,$/, ",}")],
    ["a comment", with_(METHOD, `/* */${METHOD}`)],
    ["NaN", with_('"text":"smuggled"', '"text":"smuggled","n":NaN')],
    ["Infinity", with_('"text":"smuggled"', '"text":"smuggled","n":-Infinity')],
    ["a number with a leading zero", with_('"text":"smuggled"', '"text":"smuggled","n":01')],
    ["a tab in a string", with_("smuggled", "smug\tgled")],
    ["invalid UTF-8", (id) => Buffer.concat(split(call(id), "smuggled", Buffer.from([0xc3, 0x28])))],
    ["UTF-8 of a surrogate", (id) => Buffer.concat(split(call(id), "smuggled", Buffer.from([0xed, 0xa0, 0x80])))],
    ["an overlong NUL", (id) => Buffer.concat(split(call(id), "smuggled", Buffer.from([0xc0, 0x80])))],
    ["two methods, the call last", inFrame('"method":"tools/list"')],
    ["two methods, the call first", with_(METHOD, `${METHOD},"method":"tools/list"`)],
    ["two methods, one escaped", inFrame('"m\\u0065thod":"tools/list"')],
    ["two params", inFrame('"params":{"name":"fail"}')],
    ["two params, one escaped", inFrame('"p\\u0061rams":{"name":"fail"}')],
    ["two ids", inFrame('"id":"another"')],
    ["two versions of JSON-RPC", inFrame('"jsonrpc":"1.0"')],
    ["two keys of no meaning", inFrame('"x":1,"x":2')],
    ["two names", inParams('"name":"fail"')],
    ["two names, one escaped", inParams('"n\\u0061me":"fail"')],
    ["two arguments", with_(ARGUMENTS, `"arguments":{},${ARGUMENTS}`)],
    ["two arguments, one escaped", with_(ARGUMENTS, `${ARGUMENTS},"\\u0061rguments":{}`)],
    ["two _meta", inParams('"_meta":{},"_meta":{}')],
    ["two request states", inParams('"requestState":"a","requestState":"b"')],
    ["two input responses", inParams('"inputResponses":{},"inputResponses":{}')],
    ["two params of no meaning", inParams('"x":1,"x":2')],
    ["Method beside method", inFrame('"Method":"tools/list"')],
    ["METHOD alone", with_('"method"', '"METHOD"')],
    ["Params", with_('"params"', '"Params"')],
    ["params with a long s", with_('"params"', '"param\u017f"')],
    ["params with an escaped long s", with_('"params"', '"param\\u017f"')],
    ["ID", with_('"id"', '"ID"')],
    ["JSONRPC", with_('"jsonrpc"', '"JSONRPC"')],
    ["Name beside name", inParams('"Name":"fail"')],
    ["NAME alone", with_(NAME, '"NAME":"echo"')],
    ["Arguments beside arguments", inParams('"Arguments":{}')],
    ["arguments with a long s", with_('"arguments"', '"argument\u017f"')],
    ["TASK", inParams('"TASK":{"ttl":1}')],
    ["task with a Kelvin sign", inParams('"tas\u212a":{"ttl":1}')],
    ["_META", inParams('"_META":{}')],
    ["requeststate", inParams('"requeststate":"a"')],
    ["InputResponses", inParams('"InputResponses":{}')],
    ["method and a NUL", inFrame('"method\\u0000":"tools/list"')],
    ["a NUL and params", inFrame('"\\u0000params":{}')],
    ["name and a NUL", inParams('"name\\u0000":"fail"')],
    ["arguments and a NUL", inParams('"arguments\\u0000":{}')],
    ["tools/call and a NUL", with_('"tools/call"', '"tools/call\\u0000"')],
    ["a NUL and tools/call", with_('"tools/call"', '"\\u0000tools/call"')],
    ["the tool's name and a NUL", with_(NAME, '"name":"echo\\u0000"')],
    ["params in a list", (id) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"tools/call","params":["echo",{}]}`],
  ];
}

/**
 * Calls that are well-formed and written unusually: `[what it is, (id) => text]`. They are calls of `tap` that get
 * refused, so that the question shows that they were recognised.
 */
export function disguised(isModern) {
  const call = (id) => request(id, "tools/call", { name: "tap", arguments: { offer: [`${id} 1`, `${id} 2`] } }, isModern);
  return [
    ["tools\\/call", (id) => call(id).replace("tools/call", "tools\\/call")],
    ["an escaped letter in the method", (id) => call(id).replace("tools/call", "t\\u006Fols/call")],
    ["an escaped letter in method", (id) => call(id).replace('"method"', '"meth\\u006fd"')],
    ["an escaped letter in params", (id) => call(id).replace('"params"', '"\\u0070arams"')],
    ["an escaped letter in name", (id) => call(id).replace('"name"', '"n\\u0061me"')],
    ["white space everywhere", (id) => call(id).replaceAll(/([{}[\],:])(?=["{[\]}])/g, " $1\t ")],
    ["the method last", (id) => call(id).replace('"method":"tools/call",', "").replace(/}$/, ',"method":"tools/call"}')],
  ];
}

function split(text, piece, bytes) {
  const at = text.indexOf(piece);
  return [Buffer.from(text.slice(0, at)), bytes, Buffer.from(text.slice(at + piece.length))];
}
