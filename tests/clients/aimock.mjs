// A model server of somebody else's, for a Recap to ask: prints its address, and ends when its input does.
// What came is on its /__aimock/journal.
import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ host: "127.0.0.1", port: 0 });
mock.addFixture({ match: { model: "mini-model" }, response: { content: "They spoke of a kettle." } });
mock.addFixture({ match: { userMessage: "kettle" }, response: { content: "It is in the attic, next to the skis." } });
await mock.start();
console.log(mock.url);
process.stdin.resume();
process.stdin.on("end", async () => {
  await mock.stop();
  process.exit(0);
});
