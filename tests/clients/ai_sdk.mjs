// Vercel's AI SDK with its provider for OpenAI-compatible servers at a Recap: what it gets, as one line of JSON.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";

const [baseURL, apiKey] = process.argv.slice(2);
const recap = createOpenAICompatible({
  name: "recap",
  baseURL,
  apiKey,
  includeUsage: true,
  headers: { "X-Session-Id": "ai-sdk" },
});
const model = recap("gpt-9");
const providerOptions = { recap: { user: "vercel" } };
const messages = [{ role: "user", content: "The blue kettle is in the attic." }];
const got = {};

const plain = await generateText({ model, messages, providerOptions, maxRetries: 0 });
got.plain = plain.text;
got.session = plain.response.headers["x-memory-session-id"];
messages.push(...plain.response.messages, { role: "user", content: "Count to five." });

const stream = streamText({ model, messages, providerOptions, maxRetries: 0 });
got.pieces = [];
for await (const piece of stream.textStream) got.pieces.push(piece);
got.completionTokens = (await stream.usage).outputTokens;
messages.push(...(await stream.response).messages, { role: "user", content: "Is it warm in Lyon?" });

const weather = tool({
  description: "The weather in a city.",
  inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }),
  execute: async ({ city }) => `21 degrees in ${city}`,
});
const answered = streamText({
  model,
  messages,
  providerOptions,
  maxRetries: 0,
  tools: { weather },
  stopWhen: stepCountIs(3),
});
got.withTools = await answered.text;
got.steps = (await answered.steps).length;

try {
  await generateText({ model: createOpenAICompatible({ name: "recap", baseURL })("gpt-9"), prompt: "Hi", maxRetries: 0 });
} catch (error) {
  got.refused = [error.name, error.statusCode, error.data?.error.code];
}
console.log(JSON.stringify(got));
