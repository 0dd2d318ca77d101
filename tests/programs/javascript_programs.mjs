// Drive a program for JavaScript: `node javascript_programs.mjs NAME URL KEY` prints what it can do, as a line of JSON.
// A check is true, or says what went wrong.
import { readFileSync } from "node:fs";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { createOpenRouter } from "@openrouter/ai-sdk-provider";
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";
import { Ajv2020 } from "ajv/dist/2020.js"; // comes with the SDK of MCP, as its formats do
import addFormats from "ajv-formats";

const [name, url, apiKey] = process.argv.slice(2);
const user = name.replaceAll(/[, ]+/g, "-");
const TELL = "My cat is called Miso.";
const HELLO = "Say hello.";
const baseURL = `${url}/v1`;

const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const place = jsonSchema({
  type: "object",
  properties: { city: { type: "string" }, degrees: { type: "integer" } },
  required: ["city", "degrees"],
  additionalProperties: false,
});
const weather = tool({
  description: "The weather in a city.",
  inputSchema: jsonSchema(city),
  execute: async ({ city }) => `21 degrees in ${city}`,
});

/** The models of the AI SDK's providers, each with what names the person. */
const MODELS = {
  "@ai-sdk/openai": () => [createOpenAI({ baseURL, apiKey })("recap"), { openai: { user } }],
  "@ai-sdk/openai-compatible": () => [
    createOpenAICompatible({ name: "recap", baseURL, apiKey, includeUsage: true, supportsStructuredOutputs: true })("recap"),
    { recap: { user } },
  ],
  "@ai-sdk/anthropic": () => [createAnthropic({ baseURL, apiKey })("recap"), { anthropic: { metadata: { userId: user } } }],
  "@openrouter/ai-sdk-provider": () => [createOpenRouter({ baseURL, apiKey, compatibility: "strict" }).chat("recap", { user }), {}],
};

async function attempt(check) {
  try {
    return await check();
  } catch (error) {
    console.error(error);
    return `${error.name}: ${error.message}`.slice(0, 300);
  }
}

async function ofAiSdk(model, providerOptions) {
  const ask = (prompt, more) => generateText({ model, providerOptions, prompt, maxRetries: 0, ...more });
  const got = {};
  got.works = await attempt(async () => (await ask(HELLO)).text === "Hello to you.");
  got.remembers = await attempt(async () => {
    await ask(TELL);
    const { text } = await ask("What is my cat called?");
    return text.includes("Miso") || text;
  });
  got.tools = await attempt(async () => {
    const { text } = await ask("Is it warm in Lyon?", { tools: { weather }, stopWhen: stepCountIs(3) });
    return text.includes("21") || text;
  });
  got.structured = await attempt(async () => {
    const { output } = await ask("Which city is meant?", { output: Output.object({ schema: place }) });
    return (output.city === "Lyon" && output.degrees === 21) || JSON.stringify(output);
  });
  got.usage = await attempt(async () => {
    const stream = streamText({ model, providerOptions, prompt: HELLO, maxRetries: 0 });
    let pieces = 0;
    for await (const _ of stream.textStream) pieces += 1;
    const { outputTokens } = await stream.usage;
    return (pieces > 1 && outputTokens > 0) || `${pieces} pieces, ${outputTokens} tokens`;
  });
  return got;
}

async function ofMcp() {
  const client = new Client({ name: "programs", version: "1" });
  const headers = { Authorization: `Bearer ${apiKey}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp?user_id=${user}`), { requestInit: { headers } }));
  const { tools } = await client.listTools();
  await client.callTool({ name: "add_memory", arguments: { text: "Their cat is called Miso.", quote: TELL } });
  const found = await client.callTool({ name: "search_memories", arguments: { query: "cat" } });
  await client.close();
  const told = JSON.stringify(found.content);
  const data = JSON.stringify(found.structuredContent ?? null);
  return {
    works: tools.length > 5 || `${tools.length} tools`,
    remembers: told.includes("Miso") || told,
    tools: await attempt(() => compile(tools)),
    structured: data.includes("Miso") || `structuredContent: ${data}`,
    usage: null,
  };
}

/** Compile every schema as strict clients do. */
function compile(tools) {
  for (const { inputSchema, outputSchema } of tools) {
    const ajv = new Ajv2020({ strict: true });
    addFormats.default(ajv);
    ajv.compile(inputSchema);
    if (outputSchema) ajv.compile(outputSchema);
  }
  return true;
}

const version = JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version;
const found = await attempt(() => (name in MODELS ? ofAiSdk(...MODELS[name]()) : ofMcp()));
console.log(JSON.stringify({ version, ...(typeof found === "string" ? { works: found } : found) }));
