// The openai package for JavaScript at a Recap: what it gets, as one line of JSON.
import OpenAI from "openai";

const [baseURL, apiKey] = process.argv.slice(2);
const model = "gpt-9";
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, defaultHeaders: { "X-Session-Id": "npm-openai" } });
const messages = [{ role: "user", content: "The blue kettle is in the attic." }];
const got = {};

const { data: plain, response } = await client.chat.completions.create({ model, messages, user: "npm" }).withResponse();
got.plain = plain.choices[0].message.content;
got.session = response.headers.get("X-Memory-Session-Id");

messages.push(plain.choices[0].message, { role: "user", content: "Count to five." });
const stream = await client.chat.completions.create({
  model,
  messages,
  user: "npm",
  stream: true,
  stream_options: { include_usage: true },
});
got.pieces = [];
for await (const chunk of stream) {
  if (chunk.choices[0]?.delta.content) got.pieces.push(chunk.choices[0].delta.content);
  if (chunk.usage) got.completionTokens = chunk.usage.completion_tokens;
}
messages.push({ role: "assistant", content: got.pieces.join("") });

// A helper of the SDK: it calls the function, sends its result, and goes on until there is an answer.
messages.push({ role: "user", content: "Is it warm in Lyon?" });
const runner = client.chat.completions.runTools({
  model,
  messages,
  user: "npm",
  stream: true,
  tools: [
    {
      type: "function",
      function: {
        name: "weather",
        parameters: { type: "object", properties: { city: { type: "string" } } },
        parse: JSON.parse,
        function: ({ city }) => `21 degrees in ${city}`,
      },
    },
  ],
});
got.withTools = await runner.finalContent();

try {
  await new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 }).models.list();
} catch (error) {
  got.refused = [error.constructor.name, error.status, error.code];
}
got.models = (await client.models.list()).data.map((one) => one.id);
console.log(JSON.stringify(got));
