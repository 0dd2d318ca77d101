// Vercel's AI SDK with a memory: Recap answers as an OpenAI-compatible server, and its client shows what it has stored.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";
import { Recap } from "recap-client";

const url = process.env.RECAP_URL ?? "http://127.0.0.1:8000";
const apiKey = process.env.RECAP_API_KEY ?? "none";
const headers = { "X-Session-Id": "cats" };
const provider = createOpenAICompatible({ name: "recap", baseURL: `${url}/v1`, apiKey, headers });

const model = provider("recap");
const { textStream } = streamText({ model, prompt: "My cat is called Miso.", providerOptions: { recap: { user: "ada" } } });
for await (const words of textStream) process.stdout.write(words);

const recap = new Recap(url, { apiKey, userId: "ada" });
for await (const message of recap.messages("cats")) console.log(`\n${message.role}: ${message.content}`);
