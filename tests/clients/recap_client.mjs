// @ts-check
// Recap's own client for JavaScript: what it gets, as one line of JSON.
import { NoAnswer, NotFound, Recap } from "recap-client";

/** @type {string[]} */
const [baseURL, apiKey] = /** @type {any} */ (globalThis).process.argv.slice(2);
const server = baseURL.replace(/\/v1$/, "");
let calls = 0;
/** @type {("lost" | "busy")[]} */
const faults = [];
/** @type {typeof fetch} */
const recorded = async (address, init = {}) => {
  calls += 1;
  const fault = faults.shift();
  if (fault === "busy") return new Response("{}", { status: 429, headers: { "Retry-After": "0" } });
  const response = await fetch(address, init);
  if (fault === "lost") throw new TypeError(`lost: ${await response.text()}`);
  return response;
};
const recap = new Recap(server, { apiKey, userId: "js/ada", fetch: recorded });
/** @type {Record<string, any>} */
const got = {};

faults.push("lost", "busy");
const first = await recap.chat("The blue kettle is in the attic.", { session_id: "js" });
got.plain = first.reply;
const stream = recap.stream("Count to five.", { session_id: "js", idempotency_key: "js-2" });
got.pieces = [];
for await (const words of stream) got.pieces.push(words);
got.answer = [stream.answer?.reply, stream.answer?.session_id, stream.answer?.usage.completion_tokens];
const again = await recap.chat("Count to five.", { session_id: "js", idempotency_key: "js-2" });
got.again = again.message_id === stream.answer?.message_id;

await recap.addMessages("js-more", Array.from({ length: 130 }, (_, n) => ({ role: "user", content: `Tea ${n}` })));
const more = [];
for await (const message of recap.messages("js-more")) more.push(message);
got.messages = [more.length, more[129].content];
const page = await recap.messages("js-more").page({ limit: 60 });
const last = await recap.messages("js-more").page({ cursor: page.next_cursor });
got.pages = [page.items.length, last.items[69].content, last.next_cursor];
await recap.eraseMessage("js-more", more[0].id);
await recap.changeSession("js", { title: "Kettles" });
got.title = (await recap.session("js")).title;
got.sessions = [];
for await (const session of recap.sessions({ q: "Kettles" })) got.sessions.push(session.id);

const fact = await recap.addFact("Ada drinks tea.", { category: "preference" });
await recap.changeFact(fact.id, { pinned: true });
got.facts = [];
for await (const one of recap.facts({ category: "preference", as_of: new Date() })) got.facts.push([one.text, one.pinned]);
await recap.forgetFact(fact.id, { restore: false });
got.found = (await recap.search("kettle", { role: "user" })).results[0].content;
got.block = (await recap.recall("Where is the kettle?")).block.includes("attic");

await recap.putItem(["notes", "tea"], "cups", { n: 2 }, { ttl: 60 });
got.item = (await recap.getItem(["notes", "tea"], "cups")).value;
got.items = (await recap.searchItems(["notes"], { filter: { n: 2 } })).items.length;
await recap.deleteItem(["notes", "tea"], "cups");
faults.push("lost");
const sheet = await recap.uploadDocument(new File(["# Sencha\n\nIt takes 70 degrees."], "tea.md"), { uri: "https://tea.example" });
got.document = [sheet.title, sheet.uri, sheet.user_id, sheet.state];
await recap.editProfile([{ op: "add", path: "/home", value: "Tartu" }]);
got.home = (await recap.profile()).document.home;
got.thumbs = (await recap.giveFeedback("js", first.message_id ?? 0, { thumbs: "up" })).thumbs;

/** @param {unknown} error */
const told = (error) => (error instanceof NotFound ? [error.name, error.status, error.code] : String(error));
got.stranger = await recap.forUser("js/bob").session("js").catch(told);
got.prompts = (await recap.listPrompts()).items.length > 2;
got.imported = (await recap.importChats(new TextEncoder().encode('[{"messages": [{"role": "user", "content": "Hi"}]}]'))).created.sessions;
const exported = await recap.export();
got.exported = typeof exported === "string" ? exported : exported.user_id;
got.nobody = await new Recap(server, { apiKey, userId: /** @type {any} */ (null) }).profile().catch((error) => error.name);
got.foreign = await recap.chat("Hello", { user_id: "js/bob" }).catch((error) => error instanceof TypeError);
got.completed = (await recap.complete([{ role: "user", content: "Say hello." }], { model: "gpt-9" })).choices.length;
const twice = recap.stream("Hello", { session_id: "js-twice" });
got.twice = [];
for (let time = 0; time < 2; time++) for await (const words of twice) got.twice.push(words);
got.twice = [got.twice.length > 1, (await recap.session("js-twice")).message_count];
const events = recap.events({ after: "0-0-0-0-0", seconds: 0 });
got.events = new Set();
for await (const { type } of events) got.events.add(type);
got.events = got.events.has("message.stored") && events.position !== undefined;
for await (const event of recap.withOptions({ timeout: 500, retries: 0 }).events({ seconds: 1 })) got.events = event; // nothing happens
const controller = new AbortController();
const aborted = recap.withOptions({ signal: controller.signal }).stream("Count to five.", { session_id: "js-aborted" });
got.aborted = [];
try {
  for await (const words of aborted) {
    got.aborted.push(words);
    controller.abort(new Error("enough"));
  }
} catch (error) {
  got.aborted.push(String(error));
}
Object.assign(/** @type {any} */ (globalThis).process.env, { RECAP_URL: server, RECAP_API_KEY: apiKey, RECAP_USER_ID: "js/ada" });
got.fromEnv = (await Recap.fromEnv().session("js")).title;
await recap.eraseSession("js-more");
got.erased = await recap.session("js-more").catch(told);
calls = 0;
faults.push("lost");
got.notRepeated = await recap.addFact("Tea is ready.").catch((error) => [error instanceof NoAnswer, error.status]);
got.notRepeated.push(calls);
console.log(JSON.stringify(got));
