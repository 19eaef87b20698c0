// What the conformance suite expects of a server: its tools, resources and prompts, with our own words where any will do.

/** One pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/** No sound, as WAV. */
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const text = (words) => ({ type: "text", text: words });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const embedded = (uri, words) => ({ type: "resource", resource: { uri, mimeType: "text/plain", text: words } });

const tool = (name, description, properties = {}, required = []) => ({
  name,
  description,
  inputSchema: { type: "object", properties, required },
});
const string = { type: "string" };

export const tools = [
  tool("test_simple_text", "Returns text"),
  tool("test_image_content", "Returns an image"),
  tool("test_audio_content", "Returns sound"),
  tool("test_embedded_resource", "Returns a resource"),
  tool("test_multiple_content_types", "Returns text, an image and a resource"),
  tool("test_tool_with_logging", "Logs three times"),
  tool("test_tool_with_progress", "Reports progress three times"),
  tool("test_error_handling", "Fails"),
  tool("test_sampling", "Asks the client's model", { prompt: string }, ["prompt"]),
  tool("test_elicitation", "Asks the client's user", { message: string }, ["message"]),
  tool("test_elicitation_sep1034_defaults", "Asks with defaults"),
  tool("test_elicitation_sep1330_enums", "Asks with choices"),
  {
    name: "json_schema_2020_12_tool",
    description: "Has a schema with words of JSON Schema 2020-12",
    inputSchema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: { address: { $anchor: "addressDef", type: "object", properties: { street: string, city: string } } },
      properties: { name: string, address: { $ref: "#/$defs/address" }, contactMethod: { enum: ["phone", "email"] }, phone: string, email: string },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false,
    },
  },
];

/** The results of the tools that need nobody else. */
export const results = {
  test_simple_text: () => ({ content: [text("This is a simple text response for testing.")] }),
  test_image_content: () => ({ content: [image] }),
  test_audio_content: () => ({ content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }] }),
  test_embedded_resource: () => ({ content: [embedded("test://embedded-resource", "This is an embedded resource content.")] }),
  test_multiple_content_types: () => ({
    content: [text("Multiple content types test:"), image, embedded("test://mixed-content-resource", "mixed")],
  }),
  test_error_handling: () => ({ isError: true, content: [text("This tool intentionally returns an error for testing")] }),
  json_schema_2020_12_tool: () => ({ content: [text("taken")] }),
};

/** The forms that the tools ask with. */
export const forms = {
  test_elicitation: {
    type: "object",
    properties: { username: { type: "string", description: "User's response" }, email: { type: "string", description: "User's email address" } },
    required: ["username", "email"],
  },
  test_elicitation_sep1034_defaults: {
    type: "object",
    properties: {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    },
  },
  test_elicitation_sep1330_enums: {
    type: "object",
    properties: {
      untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
      titledSingle: { type: "string", oneOf: ["1", "2", "3"].map((n) => ({ const: `value${n}`, title: `Choice ${n}` })) },
      legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
      untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
      titledMulti: { type: "array", items: { anyOf: ["1", "2", "3"].map((n) => ({ const: `value${n}`, title: `Choice ${n}` })) } },
    },
  },
};

export const resources = [
  { uri: "test://static-text", name: "text", mimeType: "text/plain" },
  { uri: "test://static-binary", name: "binary", mimeType: "image/png" },
  { uri: "test://watched-resource", name: "watched", mimeType: "text/plain" },
];
export const templates = [{ uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" }];

/** What a resource holds; undefined when there is none. */
export function contents(uri) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id) return { uri, mimeType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) };
  if (uri === "test://static-binary") return { uri, mimeType: "image/png", blob: PNG };
  const known = resources.some((resource) => resource.uri === uri);
  return known ? { uri, mimeType: "text/plain", text: "This is the content of the static text resource." } : undefined;
}

export const prompts = [
  { name: "test_simple_prompt", description: "A prompt" },
  { name: "test_prompt_with_arguments", description: "A prompt with arguments", arguments: [{ name: "arg1", required: true }, { name: "arg2", required: true }] },
  { name: "test_prompt_with_embedded_resource", description: "A prompt with a resource", arguments: [{ name: "resourceUri", required: true }] },
  { name: "test_prompt_with_image", description: "A prompt with an image" },
];

/** A prompt's messages; undefined when there is none. */
export function messages(name, given = {}) {
  const says = (...content) => content.map((content) => ({ role: "user", content }));
  switch (name) {
    case "test_simple_prompt":
      return says(text("This is a simple prompt for testing."));
    case "test_prompt_with_arguments":
      return says(text(`Prompt with arguments: arg1='${given.arg1}', arg2='${given.arg2}'`));
    case "test_prompt_with_embedded_resource":
      return says(embedded(given.resourceUri, "Embedded resource content for testing."), text("Please process the embedded resource above."));
    case "test_prompt_with_image":
      return says(image, text("Please analyze the image above."));
    default:
      return undefined;
  }
}
