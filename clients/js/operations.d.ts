// The JSON objects that calls take and answer, and a method for each call.
// Generated from the OpenAPI document by clients/generate.py (`make clients`): change that one instead.

import type { EventStream, Listing, Stream } from "./index.js";

export interface AnthropicMessage {
  id: string;
  type: "message";
  role: "assistant";
  model: string;
  content: (Record<string, any>)[];
  stop_reason: string;
  stop_sequence: string | null;
  usage: Record<string, any>;
  /** With `X-Memory-Tools: on`: `written`, the facts that the model wrote. */ memory?: Record<string, any>;
}
export interface Appended {
  session: Session;
  /** The ids of all messages that were sent, in order. */ message_ids: number[];
  /** How many of them were new. */ created: number;
}
export interface Archive {
  id: number;
  user_id: string | null;
  space: string | null;
  /** The id that the session had. */ session_id: string;
  title: string;
  message_count: number;
  first_message_at: string | null;
  last_message_at: string | null;
  /** When the session was taken out. */ created_at: string;
}
export interface ArchivePage {
  items: Archive[];
  next_cursor: string | null;
}
export interface Backlog {
  /** Sessions with messages that no summary covers. */ sessions: number;
  /** Estimated tokens of the mini model's calls for their summaries. */ tokens: number;
  /** Updates of summaries that wait or run. */ waiting: number;
  /** Updates that have failed for good; `GET /api/jobs` says why. */ failed: number;
}
export interface Call {
  method: string;
  path: string;
  body?: Record<string, any>;
}
export interface CalledFunction {
  name: string;
  /** As JSON. */ arguments?: string;
}
export interface CategoryRule {
  name: string;
  /** Whether its facts are kept. */ keep?: boolean;
  /** How long they stay; null: as long as they are true. */ days?: number | null;
  /** What a category of your own has, in words for the mini model. */ about?: string;
}
export interface ChatReply {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: (Record<string, any>)[];
  usage: ChatUsage;
  /** Null for a temporary turn without a session. */ session_id: string | null;
  user_message_id: number | null;
  /** The id of the stored reply. */ message_id: number | null;
  reply: string;
  memory: Memory;
  /** Only present when the built-in model answers; says so. */ notice?: string;
}
export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /** True if the provider gave no figures. */ estimated: boolean;
  /** What sending every message but hidden and refused ones would have cost. */ full_history_tokens: number;
  /** The difference. It is below zero while a session is short. */ saved_tokens: number;
}
export interface ClosedFact {
  id: number;
  text: string;
  category: string;
  session_id: string | null;
  valid_from: string;
}
export interface Completion {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: (Record<string, any>)[];
  usage: Record<string, any>;
}
export interface ConsolidationRun {
  at: string;
  merged: number;
  contradicted: number;
  expired: number;
}
export interface ConsolidationRunList {
  items: ConsolidationRun[];
}
export interface ConversationItem {
  id: string;
  type: string;
}
export interface ConversationItems {
  object: "list";
  data: ConversationItem[];
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
}
export interface ConversationObject {
  id: string;
  object: "conversation";
  created_at: number;
  metadata: Record<string, any>;
}
export interface ConversationType {
  /** Words that tell it; of a cue with several words, all have to be in one message. */ cues: string[];
  /** Stands beside the system prompt, from the next compaction on. */ prompt: string;
  recall: "auto" | "always" | "tools" | "off" | null;
  recall_tokens: number | null;
  fact_tokens: number | null;
  example_tokens: number | null;
  /** Sections that come first in the summary, from the next compaction on. */ emphasis: ("topic" | "requirements" | "constraints" | "excluded" | "data" | "open_questions" | "discussed")[];
  name: string;
  /** Whether it has cue words beside its own. */ built_in: boolean;
  /** Whether it is for all people of the tenant. */ of_tenant: boolean;
}
export interface ConversationTypeList {
  items: ConversationType[];
}
export interface Correction {
  id: number;
  text: string;
  category: string;
  session_id: string | null;
  /** Null if a person or an API call wrote its text. */ source_message_id: number | null;
  valid_from: string;
}
export interface DeletedObject {
  id: string;
  object: string;
  deleted: true;
}
export interface Delivery {
  event_id: string;
  type: string;
  at: string;
  /** Of HTTP; null when no answer came. */ status: number | null;
  /** Why it counts as failed; null: it was delivered. */ error: string | null;
  seconds: number;
}
export interface Document {
  id: string;
  user_id: string | null;
  space: string | null;
  title: string;
  uri: string | null;
  external_id: string | null;
  media_type: string;
  /** Bytes of the file, or of the text. */ size: number;
  /** Of a PDF; null for any other document. */ pages: number | null;
  /** Parts that are found one by one. */ passages: number;
  /** An estimate for all of its text. */ tokens: number;
  created_at: string;
  /** When it was last replaced. */ updated_at: string;
  /** Of one that was just sent: `created`, `replaced`, or `unchanged`, where the same was stored before. */ state: string | null;
}
export interface DocumentPage {
  items: Document[];
  next_cursor: string | null;
}
export interface DocumentPlace {
  id: string;
  title: string;
  uri: string | null;
  /** The page of a PDF that the best passage is on. */ page?: number;
}
export interface Edge {
  subject: Entity;
  relation: string;
  object: Entity;
  /** 1: a link of the entity itself. 2: a link of its neighbours, and so on. */ distance: number;
  fact_id: number;
  /** The words of its source that it rests on. */ quote: string;
  session_id: string | null;
  source_message_id: number | null;
  valid_from: string;
  /** Null while it is true. */ valid_to: string | null;
}
export interface EdgePage {
  items: Edge[];
  next_cursor: string | null;
}
export interface Entity {
  /** `user` is the person whose memory it is. */ name: string;
  /** `person`, `place`, `organisation` or `thing`. */ kind: string;
}
export interface Event {
  id: string;
  /** `message.stored`: a message was stored: said in a turn, appended, imported, or sent by a client's program; `summary.updated`: a session's summary has a new version; `fact.created`: a fact was made; `fact.corrected`: a fact was edited, superseded, merged, contradicted, excluded, ended, expired or reopened; `fact.forgotten`: a fact was deleted, by itself or with its message or session; `profile.updated`: a person's profile has a new version; `overview.updated`: the overview of a person has a new version; `document.stored`: a document was added or replaced; `document.erased`: a document was deleted; `job.failed`: a job failed for the last time, until somebody retries it; `person.erased`: everything of a person was erased; only those who listen to the whole tenant get this; `space.erased`: everything of a space was erased; told as `person.erased` is. */ type: string;
  timestamp: string;
  data: EventData;
}
export interface EventData {
  user_id: string | null;
  space: string;
  session_id: string | null;
  message_id: number;
  role: string;
  /** Of a message: its place in the session. */ position: number;
  /** Of a message: when it was said. */ created_at: string;
  /** Only with `words`. Null where the person asked not to remember the message. */ content: string | null;
  /** Only with `words`. */ name: string | null;
  /** Of a summary, a profile or an overview. */ version: number;
  /** The last position that the summary covers. */ through: number;
  /** `model`, `person`, or what made the version. */ author: string;
  /** Of a summary. Only with `words`. */ sections: Record<string, any>;
  fact_id: number;
  /** `made`, `accepted`, `edited`, `superseded`, `merged`, `contradicted`, `excluded`, `ended`, `expired` or `reopened`. Of a forgotten fact `forgotten`, `superseded` (another fact stands for it), `replaced` or `refused` with its message, or `archived` with its session. */ action: string;
  category: string;
  importance: number;
  pinned: boolean;
  scope: string;
  superseded_by: number | null;
  /** Of a fact, after this change. Only with `words`. */ text: string;
  /** Each value with its source. Only with `words`. */ profile: Record<string, any>;
  /** Its sentences, each with its sources. Only with `words`. */ overview: Record<string, any>;
  document_id: string;
  job_id: number;
  /** Of a job. */ kind: string;
  /** Of a test. */ webhook_id: number;
}
export interface Example {
  id: number;
  input: string;
  output: string;
  /** From the message to the answer, where tools were called in between. Empty for most. */ messages: ExampleMessage[];
  tags: string[];
  /** How good the answer is, from 1 to 5. Of similar examples the best rated come first. */ rating: number;
  created_at: string;
}
export interface ExampleMessage {
  role: "user" | "assistant" | "tool";
  content?: string | null;
  tool_calls?: ToolCall[];
  /** The call whose result a tool's message is. */ tool_call_id?: string;
}
export interface ExamplePage {
  items: Example[];
  next_cursor: string | null;
}
export interface Excerpt {
  /** Null for a document. */ session_id: string | null;
  /** The document that the passages are of, in place of a session. */ document?: DocumentPlace;
  /** The title of the session or document. */ title: string;
  messages: ExcerptMessage[];
  /** The ids of the messages that the search found. */ hits: number[];
  score: number;
  why: Record<string, number>;
  /** What it shows of the conversation's summary; null: nothing. */ summary: Gist | null;
}
export interface ExcerptMessage {
  id: number;
  /** Its number within the session, from 1. */ position: number;
  role: string;
  name: string | null;
  content: string;
  created_at: string;
  /** Of a passage: its page in a PDF. */ page?: number | null;
}
export interface Excluded {
  option: string;
  reason?: string;
}
export interface ExportDocument {
  format: "recap-export";
  version: 1;
  exported_at: string;
  user_id: string | null;
  space: string | null;
  /** False: the person has turned their memory off. */ remember: boolean;
  sessions: ExportedSession[];
  facts: ExportedFact[];
  items: ExportedItem[];
  documents: ExportedDocument[];
  archives: Archive[];
}
export interface ExportedCost {
  prompt_tokens: number;
  completion_tokens: number;
  calls: number;
  facts: Record<string, number>;
}
export interface ExportedDocument {
  id: string | null;
  title: string;
  uri: string | null;
  external_id: string | null;
  media_type: string;
  digest: string;
  size: number;
  pages: number | null;
  created_at: string;
  updated_at: string;
  passages: ExportedPassage[];
}
export interface ExportedFact {
  id: number;
  text: string;
  category: string;
  importance: number;
  scope: "session" | "user";
  session_id: string | null;
  /** The position of the message it was taken from. */ source_position: number | null;
  quote: string;
  pinned: boolean;
  recalled_count: number;
  valid_from: string;
  valid_to: string | null;
  expires_at: string | null;
  superseded_by: number | null;
  merged: boolean;
  /** It waits for review, so nobody is shown it. */ waiting: boolean;
  created_at: string;
  revisions: ExportedRevision[];
  links: ExportedLink[];
}
export interface ExportedItem {
  namespace: string[];
  key: string;
  value: any;
  version: number;
  ttl: number | null;
  refresh_on_read: boolean;
  index: string[] | null;
  expires_at: string | null;
  created_at: string;
  updated_at: string;
  sources: ExportedSource[];
  versions: ExportedVersion[];
}
export interface ExportedLink {
  subject: string;
  relation: string;
  object: string;
  subject_kind: "person" | "place" | "organisation" | "thing";
  object_kind: "person" | "place" | "organisation" | "thing";
}
export interface ExportedMessage {
  role: "user" | "assistant" | "system" | "tool";
  content: string;
  name: string | null;
  created_at: string;
  /** The application's own id: a session stores one message for each. */ external_id: string | null;
  /** What the message holds besides its text. */ extra: Record<string, any> | null;
  /** When it was erased. Then only its place is left, no text. */ erased_at: string | null;
  hidden_at: string | null;
  refused: Refused | null;
}
export interface ExportedPassage {
  text: string;
  page: number | null;
}
export interface ExportedRevision {
  action: string;
  author: string;
  text: string;
  category: string;
  importance: number;
  pinned: boolean;
  at: string;
}
export interface ExportedSession {
  id: string;
  title: string;
  system_prompt: string | null;
  pinned: boolean;
  archived: boolean;
  remember: boolean;
  type: string | null;
  client_metadata: Record<string, string> | null;
  created_at: string;
  updated_at: string;
  /** The position of the last message facts were taken from. */ facts_through: number;
  messages: ExportedMessage[];
  summaries: ExportedSummary[];
  turns: ExportedTurn[];
}
export interface ExportedSource {
  session_id: string;
  position: number;
}
export interface ExportedSummary {
  version: number;
  sections: Sections;
  /** The position of the last message it covers. */ through: number;
  tokens: number;
  author: string;
  model: string | null;
  prompt: string | null;
  usage: ExportedCost | null;
  restores: number | null;
  created_at: string;
}
export interface ExportedTurn {
  user_position: number;
  reply_position: number | null;
  model: string | null;
  finish_reason: string | null;
  usage: ExportedUsage | null;
  started_at: string;
  finished_at: string | null;
}
export interface ExportedUsage {
  prompt_tokens: number;
  completion_tokens: number;
  estimated: boolean;
  full_history_tokens: number;
}
export interface ExportedVersion {
  version: number;
  value: any;
  author: string;
  created_at: string;
}
export interface Fact {
  id: number;
  text: string;
  category: string;
  importance: number;
  /** `session`: true in its session. `user`: true in all sessions of the person. */ scope: string;
  session_id: string | null;
  /** Null if a person or an API call wrote its text. */ source_message_id: number | null;
  /** The words of its source that it rests on. Empty if a person wrote its text. */ quote: string;
  pinned: boolean;
  /** How many messages it was relevant to. */ recalled_count: number;
  valid_from: string;
  /** Null while it is true. */ valid_to: string | null;
  /** When it stops being true by itself. Null: never. */ expires_at: string | null;
  /** It waits for review: no prompt, search or other list has it. */ waiting: boolean;
  superseded_by: number | null;
  created_at: string;
  /** How often it was stated. */ proof_count: number;
  /** The facts that were merged into it, newest first. */ proofs: Proof[];
  /** Why it has its rank: `total`, the sum of `importance`, `recency`, `use` and `relevance`. */ score: Record<string, number> | null;
}
export interface FactPage {
  items: Fact[];
  next_cursor: string | null;
}
export interface FactRevision {
  fact_id: number;
  /** `made`, `edited` or `superseded`; by consolidation `merged`, `contradicted` or `expired`, and `reopened` when it is undone, or its correction is deleted; `ended` at its `expires_at`; by rules `proposed` and then `accepted`, or `excluded`. */ action: string;
  /** `model` or `person`. */ author: string;
  text: string;
  category: string;
  importance: number;
  pinned: boolean;
  at: string;
}
export interface FactRevisionList {
  items: FactRevision[];
}
export interface FeedbackGiven {
  id: number;
  thumbs: string | null;
  text: string;
  instruction: string;
  /** `waiting`: the mini model will read it. `stored`: it asks for no change. */ state: string;
  created_at: string;
}
export interface Found {
  items: Item[];
}
export interface Gist {
  text: string;
  /** When the conversation was last talked in. */ updated_at: string;
}
export interface Hidden {
  /** The positions of the messages that are hidden now. */ hidden: number[];
  /** The positions of the messages that are shown again. */ shown: number[];
}
export interface Imported {
  /** `recap-export`, or `deepseek`, `chatgpt`, `claude`, `gemini`, `mem0`, `zep`, `letta`, `langgraph`, `chats`. */ format: string;
  /** How many sessions, messages, summaries, turns, facts, items and documents are new. */ created: Record<string, number>;
  /** How many sessions, messages, facts, items and documents were stored already, or rest on what was erased. */ known: Record<string, number>;
  /** Sessions whose id was taken, and the id that each has here. */ renamed: Record<string, any>;
  /** How many items of another program's export were left out, as they are damaged or unknown. */ skipped: number;
  /** The place and the title of the first of these, at most 20. */ skipped_items: string[];
  /** Times that could not be read, or that could be two days, as 05/06/2025: each once, at most 20. Messages with them have the time of their conversation or, if it has none, of the import. */ unread_times: string[];
}
export interface InputTokens {
  object: "response.input_tokens";
  input_tokens: number;
}
export interface Instruction {
  name: string;
  /** 0 where there is only a proposal yet. */ version: number;
  text: string;
  /** `model`, `person`, `rollback` or `erasure`. */ author: string | null;
  created_at: string | null;
  /** What it changes, as lines of the unified format. */ diff: string;
  /** Whether it is for all people of the tenant. */ of_tenant: boolean;
  proposal: Proposal | null;
}
export interface InstructionList {
  items: Instruction[];
}
export interface InstructionVersion {
  name: string;
  /** 0 where there is only a proposal yet. */ version: number;
  text: string;
  /** `model`, `person`, `rollback` or `erasure`. */ author: string | null;
  created_at: string | null;
  /** What it changes, as lines of the unified format. */ diff: string;
}
export interface InstructionVersionList {
  items: InstructionVersion[];
}
export interface Item {
  namespace: string[];
  key: string;
  /** Any JSON value. */ value: any;
  /** Counts the values that were stored, from 1. */ version: number;
  /** Minutes to live; null: until it is deleted. */ ttl: number | null;
  /** Whether reading begins the `ttl` anew. */ refresh_on_read: boolean;
  expires_at: string | null;
  created_at: string;
  updated_at: string;
  /** The paths that were stored with it. */ index: string[] | null;
  /** How well it answers the `query` of a search. */ score: number | null;
}
export interface Job {
  id: number;
  kind: string;
  /** `pending`, `running` or `failed`. */ state: string;
  session_id: string | null;
  attempts: number;
  run_at: string;
  /** Why it failed last, without words of the conversation. */ error: string | null;
  /** Its place among the waiting jobs of its kind, from 1; null when it does not wait. Jobs of other tenants are not counted: tenants take turns. A job whose `run_at` has not come is passed over until then. */ position: number | null;
  /** Seconds since it was asked for. */ age: number;
  created_at: string;
  updated_at: string;
}
export interface JobPage {
  items: Job[];
  next_cursor: string | null;
}
export interface ListedMessage {
  id: number;
  session_id: string;
  /** Its number within the session, from 1. */ position: number;
  role: string;
  name: string | null;
  content: string;
  created_at: string;
  external_id: string | null;
  /** An estimate. */ tokens: number;
  /** What it holds besides its text: tool calls; and `attachments`, the `type`, `name`, `size` in bytes and `hash` of each image and file that came with it (older ones are a hash alone). */ extra: Record<string, any> | null;
  /** Since when the session's prompts do not show it. */ hidden_at: string | null;
  /** Why no prompt, summary or search shows it: a model server refused it. Null for most. */ refused: Refused | null;
  /** Of a reply: `up` or `down` by `POST /api/feedback`, else null. */ thumbs: string | null;
}
export interface ListedMessagePage {
  items: ListedMessage[];
  next_cursor: string | null;
  /** With `around`: the cursor for earlier messages, to be sent with order=desc. */ previous_cursor: string | null;
}
export interface ListedUser {
  user_id: string;
  /** When the first thing was stored. */ created_at: string;
}
export interface ListedUserPage {
  items: ListedUser[];
  next_cursor: string | null;
}
export interface Live {
  /** `ok`; of /health/ready `ready`, or `unready` with status 503. */ status: string;
}
export interface Me {
  tenant: string;
  user_id: string | null;
  /** The scopes of the key, of `chat`, `read` and `admin`. */ scopes: string[];
  /** The spaces that the key names, each with its right there: `read` or `write`. Null: it names none; without a person, it opens every space. */ spaces: Record<string, string> | null;
  /** What the key may do: `chat`; `read` what is remembered; `change`, export and erase it; change what holds for everyone of the `tenant`, as prompts and retention; set the model of the `server`. */ may: Record<string, boolean>;
}
export interface Memory {
  /** The version and state of the stored summary, and the version that was shown. */ summary: Record<string, any>;
  /** The part of the profile that was shown, instead of the facts it contains. */ profile: ShownProfile;
  /** What mattered lately, as the prompt showed it, each sentence with its sources. */ overview: ShownOverview;
  /** The instructions that were shown, and the text of the conversation's type. */ instructions: ShownText[];
  /** The type of the conversation, if its words tell one. */ type: string | null;
  /** The facts that the model was shown, in mode `tools` also those in the results of its searches. */ facts: ShownFact[];
  excerpts: Excerpt[];
  examples: Example[];
  /** What was shown of other memories that the turn reads. Only in the answer to the turn itself: others may read the session. */ others: OtherMemory[];
  /** The mode; why something was recalled, or why not, in words and as a `kind`, for texts in other languages; and in mode `tools` the model's `calls`. */ recall: Record<string, any>;
  /** The facts that the model wrote in this turn, in mode `tools`. */ written: WrittenFact[];
  /** How many messages were sent word for word, and how many did not fit. */ tail: Record<string, number>;
}
export interface Message {
  id: number;
  session_id: string;
  /** Its number within the session, from 1. */ position: number;
  role: string;
  name: string | null;
  content: string;
  created_at: string;
  external_id: string | null;
  /** An estimate. */ tokens: number;
  /** What it holds besides its text: tool calls; and `attachments`, the `type`, `name`, `size` in bytes and `hash` of each image and file that came with it (older ones are a hash alone). */ extra: Record<string, any> | null;
  /** Since when the session's prompts do not show it. */ hidden_at: string | null;
  /** Why no prompt, summary or search shows it: a model server refused it. Null for most. */ refused: Refused | null;
}
export interface MessageToAppend {
  role: "user" | "assistant" | "system" | "tool";
  content: string;
  name?: string | null;
  created_at?: string | null;
  /** The application's own id: a session stores one message for each. */ external_id?: string | null;
  /** What it holds besides its text, kept as it is. Models get `tool_calls`, `function_call` and `tool_call_id` of it. */ extra?: Record<string, any> | null;
}
export interface Model {
}
export interface ModelCheck {
  /** `main`, `mini` or `fallback`. */ task: string;
  model: string;
  address: string;
  works: boolean;
  /** Why it does not work, and what to do. */ problem: string | null;
  seconds: number;
  reply: string;
  /** Tokens that it can read at a time; null if its server does not say. */ window: number | null;
  /** What its server does not take, and how it writes JSON. */ learned: string[];
  /** What to change. */ warnings: string[];
}
export interface ModelList {
  data: Model[];
}
export interface ModelNames {
  /** The model that answers if a request names none. */ main: string;
  /** What `model` of `POST /api/chat` can name, `main` first. */ items: string[];
}
export interface ModelServer {
  /** `environment`, `stored`, or `none`: the built-in model answers. */ source: string;
  base_url: string;
  main: string;
  mini: string;
  /** The last four characters of its key, if it is long. */ key_end: string | null;
  /** Why no other can be stored; null if it can. */ refusal: string | null;
  /** Why the stored one can't be used; null if it can. */ problem: string | null;
}
export interface ModelTried {
  model: string;
  reply: string;
  seconds: number;
  /** All models that would be in use, the main model first. */ checks: ModelCheck[];
}
export interface ModelsListed {
  /** None where the server lists none. */ items: string[];
}
export interface NamespaceList {
  namespaces: string[][];
}
export interface Operation {
  op: "add" | "remove" | "replace" | "move" | "copy" | "test";
  /** A JSON Pointer, as `/likes/-`. */ path: string;
  value?: any;
  from?: string;
}
export interface OtherMemory {
  space: string | null;
  facts: ShownFact[];
  excerpts: Excerpt[];
}
export interface Overview {
  /** 0 until something is written. */ version: number;
  sentences: Sentence[];
  /** `model`, `person`, `rollback`, `correction` or `erasure`. */ author: string | null;
  created_at: string | null;
  /** Whether prompts show it: not where OVERVIEW is off. */ is_shown: boolean;
  /** Whether the mini model writes it, or does so within seconds. */ is_updating: boolean;
  /** Why the last update failed. */ error: string | null;
}
export interface OverviewSource {
  session_id: string;
  version: number;
}
export interface OverviewVersion {
  /** 0 until something is written. */ version: number;
  sentences: Sentence[];
  /** `model`, `person`, `rollback`, `correction` or `erasure`. */ author: string | null;
  created_at: string | null;
}
export interface OverviewVersionPage {
  items: OverviewVersion[];
  next_cursor: string | null;
}
export interface Passage {
  /** Its id in results of a search. */ message_id: number;
  /** Its number within the document, from 1. */ position: number;
  /** Its page in a PDF, from 1. */ page: number | null;
  /** With the headings that it stands under. */ text: string;
}
export interface PassagePage {
  items: Passage[];
  next_cursor: string | null;
}
export interface Profile {
  /** 0 until something is written. */ version: number;
  /** The profile, under the tenant's JSON Schema. */ document: Record<string, any>;
  /** In the shape of `document`: for each value the `quote` it rests on, `session_id` and `position` of its message, `since` (when that was said, or when a person wrote the value) and `author` (`model` or `person`). */ sources: any;
  /** `model`, `person`, `rollback` or `erasure`. */ author: string | null;
  created_at: string | null;
}
export interface ProfilePage {
  items: Profile[];
  next_cursor: string | null;
}
export interface Prompt {
  name: string;
  /** Stored versions count from 1; 0 is the text of a file. */ version: number;
  /** `packaged`, `file` or `stored`. */ source: string;
  /** A Jinja2 template. */ text: string;
  created_at: string | null;
}
export interface PromptDeleted {
  name: string;
  /** How many stored versions there were. */ versions: number;
}
export interface PromptList {
  items: Prompt[];
}
export interface Proof {
  id: number;
  text: string;
  /** The words of its source that it rests on. */ quote: string;
  session_id: string | null;
  source_message_id: number | null;
  valid_from: string;
}
export interface Proposal {
  text: string;
  /** The mini model's reason for it. */ reason: string;
  /** The words of the person that it rests on. */ quote: string;
  /** What it changes, as lines of the unified format. */ diff: string;
  created_at: string;
}
export interface Ready {
  /** `ok`; of /health/ready `ready`, or `unready` with status 503. */ status: string;
  database: string;
  data_dir: string;
  /** The names of the `main` and the `mini` model; and whether it is `builtin`. */ model: Record<string, any>;
  /** Only present when no model server answers; says why. */ notice?: string;
  /** The setting RECALL: when to look back if a request does not say. */ recall: string;
  /** The setting SUMMARY_PROMPT: the prompt for summaries. */ summary_prompt: string;
  jobs: Record<string, number>;
  /** Only present when jobs are due and nothing runs them; says why. */ jobs_late?: string;
  /** Only present while the embedding server fails; says why. */ embeddings?: string;
  /** Only present while webhooks are disabled because they failed; says so. */ webhooks?: string;
  /** Only present while RATE_LIMIT_STORAGE is unreachable; says so. */ rate_limits?: string;
}
export interface RecallBlock {
  block: string;
  /** Estimated tokens of the block. */ tokens: number;
  memory: Memory;
}
export interface Receipt {
  /** How many of each, including replaced messages and corrected facts. `turns` are records of how messages were answered, `summaries` versions, `edited_summaries` those that the person wrote, `item_versions` earlier values of items in the store, `documents` files and texts that were added, `archives` sessions that were taken out of memory, `index_documents` messages and passages in the search index. */ erased: Record<string, number>;
  /** Empty when no byte is left. Otherwise `search_index` or `database_files` still hold traces, because they were in use, or because single messages and facts are collected for some seconds. A job removes them. `events`: the event that the person was erased names them, and is kept for a week. */ pending: string[];
  erased_at: string;
  user_id?: string;
  space?: string;
  session_id?: string;
  message_id?: number;
  fact_id?: number;
  document_id?: string;
  example_id?: number;
  mark_id?: number;
  archive_id?: number;
  name?: string;
  namespace?: string[];
  key?: string;
  /** How many of the named facts there were. */ forgotten?: number;
}
export interface Refused {
  /** The code of the error. */ code: string;
  /** A sentence for the person, with the server's own words. */ reason: string;
  at: string;
}
export interface RelatedSession {
  session_id: string;
  title: string;
  updated_at: string;
  /** From 0 to 1. */ score: number;
  /** The `entities` that both name, and how near the `summary` is (0 to 1, or null). */ why: Record<string, any>;
}
export interface RelatedSessionList {
  items: RelatedSession[];
}
export interface ResponseObject {
  id: string;
  object: "response";
  created_at: number;
  /** `completed`, or `incomplete`: then `incomplete_details` says why. */ status: string;
  model: string;
  output: (Record<string, any>)[];
  usage: Record<string, any>;
}
export interface Result {
  item?: Item | null;
  /** How many items, and earlier values of them. */ erased?: Record<string, number>;
  items?: Item[];
  namespaces?: string[][];
}
export interface Results {
  results: Result[];
}
export interface RetentionPolicy {
  /** Days after its last message or import that a session stays; null: any number. */ days?: number | null;
  /** Number of each person's newest sessions that stay; null: all. */ sessions?: number | null;
  /** Whether a session that is taken out becomes an archive. Else it is erased. */ archive?: boolean;
}
export interface ReviewedFacts {
  accepted: number;
  refused: number;
}
export interface RpcMessage {
  jsonrpc: string;
  id?: any;
  method?: string;
  params?: Record<string, any>;
  result?: Record<string, any>;
  error?: Record<string, any>;
}
export interface RuleSet {
  categories: CategoryRule[];
  /** What is kept out, in words that the mini model reads, as `health`. */ topics: string[];
  /** What is kept out wherever it stands: words, with `*` at either end for any letters, and `#` for a digit. */ words: string[];
  /** Whether facts that models found wait until somebody accepts them. */ review: boolean;
}
export interface RulesEffect {
  facts: ClosedFact[];
  /** How many facts there are; the list ends at 1,000. */ fact_count: number;
  /** How many summaries would lose lines. */ summaries: number;
  /** How many profiles and overviews would lose values. */ profiles: number;
}
export interface RulesVersion {
  version: number;
  rules: RuleSet;
  /** A person's rules together with the tenant's. */ in_force: RuleSet;
  author: string | null;
  created_at: string | null;
}
export interface RulesVersionList {
  items: RulesVersion[];
}
export interface Said {
  role: "user" | "assistant";
  content: string;
}
export interface SchemaOfProfiles {
  schema: any;
}
export interface SearchResult {
  /** `message`, `document`, `summary` or `fact`. */ kind: string;
  /** Of a passage: the document that it is of; else null. */ document: DocumentPlace | null;
  /** The fact or the summary; null for a message. */ text: string | null;
  /** Of a fact: its id, for `/api/facts/{fact_id}`. */ fact_id: number | null;
  message_id: number | null;
  external_id: string | null;
  /** Null for a passage. */ session_id: string | null;
  /** The title of its session or document. */ title: string | null;
  position: number | null;
  role: string | null;
  name: string | null;
  content: string | null;
  created_at: string | null;
  score: number;
  /** The score's parts. */ why: Record<string, number>;
  /** The words of `content` (or `text`) that `q` found, as they are written there, each once, for a page to mark. Empty when only the meaning or the messages around matched. */ highlights: string[];
  /** With `window`: the messages around it. Of a fact or a summary: its messages. */ window: Message[];
  /** Facts that hold now in place of what it, or its `window`, says. */ corrections: Correction[];
}
export interface SearchResults {
  results: SearchResult[];
  took_ms: number;
}
export interface Sections {
  topic?: string;
  requirements?: string[];
  constraints?: string[];
  excluded?: Excluded[];
  data?: string[];
  open_questions?: string[];
  discussed?: string[];
}
export interface Sentence {
  text: string;
  /** The ids of facts. */ facts: number[];
  /** Versions of summaries, each as `session_id` and `version`. */ summaries: any;
  /** `model` or `person`. */ author: string;
}
export interface Session {
  id: string;
  user_id: string | null;
  space: string | null;
  title: string;
  system_prompt: string | null;
  pinned: boolean;
  /** An archived session is remembered as any other. */ archived: boolean;
  /** False: memory is off. A turn looks at this session alone, and what is said while it is off is neither recalled in others nor read for facts, also once it is on again. A search still finds it. */ remember: boolean;
  /** The type that was set; null: Recap tells it from the words. */ type: string | null;
  message_count: number;
  /** An estimate for all of its messages. */ tokens: number;
  /** The newest version of its summary; 0 if it has none yet. */ summary_version: number;
  created_at: string;
  updated_at: string;
  /** When messages of it were last imported; null: never. */ imported_at: string | null;
  /** Whether a reply is being written now. */ busy: boolean;
}
export interface SessionPage {
  items: Session[];
  next_cursor: string | null;
}
export interface ShownFact {
  id: number;
  text: string;
  category: string;
  pinned: boolean;
  session_id: string | null;
  /** Null if a person or an API call wrote its text. */ source_message_id: number | null;
  valid_from: string;
  /** Why it has its rank: `total`, the sum of `importance`, `recency`, `use` and `relevance`. */ score: Record<string, number> | null;
}
export interface ShownOverview {
  /** 0: none was shown. */ version: number;
  sentences: Sentence[];
}
export interface ShownProfile {
  /** 0: none was shown. */ version: number;
  /** Each with `name`, `value` and what it rests on: the `quote`, `session_id` and `position` of a message, `since` and `author`. */ values: any;
}
export interface ShownText {
  kind: "instruction" | "type";
  name: string;
  version: number;
  text: string;
  /** Whether it is for all people of the tenant. */ of_tenant: boolean;
}
export interface Space {
  name: string;
  /** What the key may do there. `read`: look at what the space remembers; `write`: also take turns in it, and change it. */ right: "read" | "write";
  /** Null: nothing is stored of it yet. */ created_at: string | null;
}
export interface SpacePage {
  items: Space[];
  next_cursor: string | null;
}
export interface Stopping {
  /** False if no reply was being written. */ stopping: boolean;
}
export interface Summary {
  session_id: string;
  /** `none`, `current`, `pending`, `updating` or `failed`. */ state: string;
  /** Why the last update failed. */ error: string | null;
  job_id: number | null;
  /** The version that prompts show. It advances when older messages leave the prompt. */ head_version: number;
  message_count: number;
  latest: SummaryVersion | null;
}
export interface SummaryPreview {
  sections: Sections;
  tokens: number;
  /** The position of the last message it covers. */ through: number;
  model: string | null;
  /** The name and version of its prompt, if it has a name. */ prompt: string | null;
  /** Tokens and calls of the mini model. `facts` counts the facts that came with it: `added`, `superseded` (older facts that they correct), `repeated` (known already) and `refused` (nobody said so). */ usage: Record<string, any> | null;
  /** The version it continues; 0 if it was made from the first message on. */ since: number;
  /** The version of the stored summary; 0 if there is none yet. */ current_version: number;
}
export interface SummaryVersion {
  sections: Sections;
  tokens: number;
  /** The position of the last message it covers. */ through: number;
  model: string | null;
  /** The name and version of its prompt, if it has a name. */ prompt: string | null;
  /** Tokens and calls of the mini model. `facts` counts the facts that came with it: `added`, `superseded` (older facts that they correct), `repeated` (known already) and `refused` (nobody said so). */ usage: Record<string, any> | null;
  version: number;
  /** `model`; `person`; `rollback`; or `replacement` or `erasure`, for a version that was brought back because messages were replaced or erased. `erasure` also stands for a version without what a forgotten fact said, `correction` for one with the new words of a fact that the person edited. */ author: string;
  /** The version that this one brought back. */ restores: number | null;
  /** Whether its messages were replaced. Then it can't be brought back. */ replaced: boolean;
  created_at: string;
}
export interface SummaryVersionPage {
  items: SummaryVersion[];
  next_cursor: string | null;
}
export interface TokenCount {
  input_tokens: number;
}
export interface ToolCall {
  id?: string;
  type?: "function";
  function: CalledFunction;
}
export interface Turn {
  user_message_id: number;
  /** The id of the reply; null if there is none (yet). */ message_id: number | null;
  /** `answering`; `finished`; `interrupted`: it was stopped, or the model failed in its middle, and the words so far are kept; `broken_off`: no reply came, and sending the same message again continues the turn; or `refused`: a model server refused the message, which tells why, and the session goes on without it. */ state: string;
  /** While there is no reply: what the model had said of it a few seconds ago; null if nothing. */ so_far: string | null;
  model: string | null;
  finish_reason: string | null;
  usage: ChatUsage | null;
  started_at: string;
  finished_at: string | null;
}
export interface TurnPage {
  items: Turn[];
  next_cursor: string | null;
}
export interface TurnWithMemory {
  user_message_id: number;
  /** The id of the reply; null if there is none (yet). */ message_id: number | null;
  /** `answering`; `finished`; `interrupted`: it was stopped, or the model failed in its middle, and the words so far are kept; `broken_off`: no reply came, and sending the same message again continues the turn; or `refused`: a model server refused the message, which tells why, and the session goes on without it. */ state: string;
  /** While there is no reply: what the model had said of it a few seconds ago; null if nothing. */ so_far: string | null;
  model: string | null;
  finish_reason: string | null;
  usage: ChatUsage | null;
  started_at: string;
  finished_at: string | null;
  memory: Memory | null;
}
export interface Unhelpful {
  id: number;
  /** The session of the question. */ session_id: string;
  /** The id of the question. */ message_id: number;
  question: string;
  /** The session of the excerpt. */ excerpt_session_id: string | null;
  messages: ExcerptMessage[];
  created_at: string;
}
export interface UnhelpfulPage {
  items: Unhelpful[];
  next_cursor: string | null;
}
export interface User {
  user_id: string | null;
  space: string | null;
  /** False: memory is off for this person, in every session and for every client. No turn recalls, shows or learns anything beyond its own session, and programs get nothing of the memory through MCP. */ remember: boolean;
  sessions: number;
  /** Messages that were not replaced or erased. */ messages: number;
  /** Facts that are true now. */ facts: number;
  /** Items of the store that have not expired. */ items: number;
  /** Files and texts that were added. */ documents: number;
  /** Sessions that were taken out of memory. */ archives: number;
  /** Versions of summaries, of all sessions. */ summaries: number;
  created_at: string;
  first_message_at: string | null;
  last_message_at: string | null;
  /** Tokens of all model calls since midnight UTC; see DAILY_TOKENS. */ tokens_today: number;
  /** Facts that were forgotten or erased in the last 30 days. No word of them is kept for it. */ facts_forgotten: number;
  /** When the last of these facts was. */ last_forgotten_at: string | null;
}
export interface Versions {
  /** The version that the session shows now. */ message_id: number;
  /** The ids of all versions, in the order they were said. */ versions: number[];
}
export interface VersionsList {
  items: Versions[];
}
export interface Webhook {
  id: number;
  user_id: string | null;
  space: string | null;
  url: string;
  /** Empty: all. */ types: string[];
  words: boolean;
  enabled: boolean;
  /** Since then no delivery has succeeded. */ failing_since: string | null;
  /** Why it was disabled by itself. */ problem: string | null;
  /** The last tries, newest first. */ deliveries: Delivery[];
  created_at: string;
  updated_at: string;
}
export interface WebhookList {
  items: Webhook[];
}
export interface WebhookMade {
  id: number;
  user_id: string | null;
  space: string | null;
  url: string;
  /** Empty: all. */ types: string[];
  words: boolean;
  enabled: boolean;
  /** Since then no delivery has succeeded. */ failing_since: string | null;
  /** Why it was disabled by itself. */ problem: string | null;
  /** The last tries, newest first. */ deliveries: Delivery[];
  created_at: string;
  updated_at: string;
  /** What deliveries are signed with, by Standard Webhooks; never shown again. */ secret: string;
}
export interface WrittenFact {
  /** `forget` also leaves the messages that say the fact, and the request, out of memory, each as a whole. */ action: "remember" | "correct" | "forget";
  fact_id: number;
  /** What is known now or, forgotten, what was known. Null when it is gone since. */ text: string | null;
  /** The person's words that it rests on, or that ask for it. */ quote: string | null;
  /** What a correction replaced. */ replaces: string | null;
  /** The call that undoes it. What was forgotten is told once: later there is none. */ undo: Call | null;
}
export interface WrittenSentence {
  text: string;
  facts?: number[];
  summaries?: OverviewSource[];
}
export declare class Operations {
  /** Send a message and get the reply. */
  chat(message: string | (Record<string, any>)[] | Record<string, any>, options?: { space?: string | null; /** The zone in which the person's days begin: of words like `yesterday`, and of the times that models see. Later turns of the session keep it, and sessions that the person begins later. The default is the setting TIMEZONE. */ timezone?: string | null; /** Spaces whose memory is read too. The default, with a person's key outside of a `space`: those it names. */ spaces?: string[] | null; /** In a `space`: whether the memory of the person who acts is read too, though the reply is the space's. The default is true with the person's own key, else false. */ person?: boolean | null; /** What was said just before, if Recap has not stored it: it tells what the message refers to. A chat takes it only with `temporary`. */ history?: Said[]; /** Without it, a session is created. */ session_id?: string | null; /** Who says it, where several persons share the session or the space. */ name?: string | null; /** `auto`: the message decides whether to look back, and only what is near it is shown. `always`: the best excerpts, however near. `tools`: the model searches. The default is that of the conversation's type, else the setting RECALL. */ recall?: "auto" | "always" | "tools" | "off" | null; /** One of `GET /api/models`. Without it, the main model answers. */ model?: string | null; /** False: the reply looks at this session alone, and nothing of the turn comes up in others: no facts are taken from it, and it is not recalled. A search still finds it. */ remember?: boolean; /** The name of the prompt for this turn's summary. */ prompt?: string | null; /** Of this turn alone, in place of the one that the session or the server has. */ system_prompt?: string | null; /** Use the memory, but store nothing of this turn. */ temporary?: boolean; /** The id of the person's message that it replaces. */ replaces?: number | null; user_id?: string; idempotency_key?: string }): Promise<ChatReply>;
  /** Send a message and get the reply. */
  stream(message: string | (Record<string, any>)[] | Record<string, any>, options?: { space?: string | null; /** The zone in which the person's days begin: of words like `yesterday`, and of the times that models see. Later turns of the session keep it, and sessions that the person begins later. The default is the setting TIMEZONE. */ timezone?: string | null; /** Spaces whose memory is read too. The default, with a person's key outside of a `space`: those it names. */ spaces?: string[] | null; /** In a `space`: whether the memory of the person who acts is read too, though the reply is the space's. The default is true with the person's own key, else false. */ person?: boolean | null; /** What was said just before, if Recap has not stored it: it tells what the message refers to. A chat takes it only with `temporary`. */ history?: Said[]; /** Without it, a session is created. */ session_id?: string | null; /** Who says it, where several persons share the session or the space. */ name?: string | null; /** `auto`: the message decides whether to look back, and only what is near it is shown. `always`: the best excerpts, however near. `tools`: the model searches. The default is that of the conversation's type, else the setting RECALL. */ recall?: "auto" | "always" | "tools" | "off" | null; /** One of `GET /api/models`. Without it, the main model answers. */ model?: string | null; /** False: the reply looks at this session alone, and nothing of the turn comes up in others: no facts are taken from it, and it is not recalled. A search still finds it. */ remember?: boolean; /** The name of the prompt for this turn's summary. */ prompt?: string | null; /** Of this turn alone, in place of the one that the session or the server has. */ system_prompt?: string | null; /** Use the memory, but store nothing of this turn. */ temporary?: boolean; /** The id of the person's message that it replaces. */ replaces?: number | null; user_id?: string; idempotency_key?: string }): Stream;
  /** List sessions, newest first. */
  sessions(options?: { space?: string | null; /** Words to look for in titles. */ q?: string | null; pinned?: boolean | null; archived?: boolean | null; before?: string | Date | null; after?: string | Date | null; /** Leave this person's out: those of other people, and of programs, stay. */ except_user_id?: string | null; user_id?: string }): Listing<Session, SessionPage>;
  /** Create an empty session. */
  createSession(options?: { space?: string | null; /** Without it, Recap makes an id. */ session_id?: string | null; title?: string; system_prompt?: string | null; /** False: memory is off. A turn looks at this session alone, and what is said while it is off is neither recalled in others nor read for facts, also once it is on again. A search still finds it. */ remember?: boolean; /** A type of `GET /api/conversation-types`. Without it, Recap tells the type from the words. */ type?: string | null; user_id?: string }): Promise<Session>;
  /** Read a session. */
  session(session_id: string, options?: { space?: string | null; user_id?: string }): Promise<Session>;
  /** Rename, pin or archive a session, turn its memory off, or set its system prompt or type. */
  changeSession(session_id: string, options?: { title?: string; system_prompt?: string | null; pinned?: boolean; archived?: boolean; /** False: memory is off. A turn looks at this session alone, and what is said while it is off is neither recalled in others nor read for facts, also once it is on again. A search still finds it. */ remember?: boolean; /** A type of `GET /api/conversation-types`. Without it, Recap tells the type from the words. */ type?: string | null; user_id?: string }): Promise<Session>;
  /** Erase a session with its messages, summaries and facts, for good. */
  eraseSession(session_id: string, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Read a session's messages, word for word. */
  messages(session_id: string, options?: { space?: string | null; order?: "asc" | "desc"; /** The id of a message, for a page with it in its middle. */ around?: number | null; /** 1, 2, ...: what was replaced first, second, ... */ branch?: number; user_id?: string }): Listing<ListedMessage, ListedMessagePage>;
  /** Append or import messages without calling a model. */
  addMessages(session_id: string, messages: MessageToAppend[], options?: { space?: string | null; user_id?: string }): Promise<Appended>;
  /** Erase a message, for good. */
  eraseMessage(session_id: string, message_id: number, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Take messages out of the session's prompts. */
  hideMessages(session_id: string, options?: { space?: string | null; /** A position; -1 is the session's last message, -2 the one before. */ first?: number; /** A position; -1 is the session's last message, -2 the one before. */ last?: number; /** The ids of messages, instead of a span. */ ids?: number[]; /** Hide all but these. */ keep?: boolean; /** Hide the recent messages that are older than the newest of so many tokens. */ tokens?: number | null; user_id?: string }): Promise<Hidden>;
  /** Put hidden messages back into the session's prompts, all or those named. */
  showMessages(session_id: string, options?: { space?: string | null; /** A position; -1 is the session's last message, -2 the one before. */ first?: number; /** A position; -1 is the session's last message, -2 the one before. */ last?: number; /** The ids of messages, instead of a span. */ ids?: number[]; user_id?: string }): Promise<Hidden>;
  /** List the messages that have other versions. */
  listMessageVersions(session_id: string, options?: { space?: string | null; user_id?: string }): Promise<VersionsList>;
  /** Bring a version of a message back. */
  restoreMessage(session_id: string, message_id: number, options?: { space?: string | null; user_id?: string }): Promise<Session>;
  /** List the person's conversations that belong together with this one, the closest first. */
  listRelatedSessions(session_id: string, options?: { space?: string | null; limit?: number; user_id?: string }): Promise<RelatedSessionList>;
  /** Stop the reply that is being written. */
  stopReply(session_id: string, options?: { space?: string | null; user_id?: string }): Promise<Stopping>;
  /** List a session's turns, newest first. */
  listTurns(session_id: string, options?: { space?: string | null; order?: "asc" | "desc"; user_id?: string }): Listing<Turn, TurnPage>;
  /** Read one turn, named by its message or its reply, with the memory its prompt showed. */
  getTurn(session_id: string, message_id: number, options?: { space?: string | null; user_id?: string }): Promise<TurnWithMemory>;
  /** Read the newest summary, and whether it is up to date. */
  summary(session_id: string, options?: { space?: string | null; user_id?: string }): Promise<Summary>;
  /** Replace the summary with an edited one. */
  editSummary(session_id: string, sections: Sections, options?: { space?: string | null; /** 409 if it is not the newest version. */ expected_version?: number | null; user_id?: string }): Promise<Summary>;
  /** List all versions, newest first. */
  listSummaryVersions(session_id: string, options?: { space?: string | null; user_id?: string }): Listing<SummaryVersion, SummaryVersionPage>;
  /** Bring an earlier version back, as a new version. */
  rollBackSummary(session_id: string, version: number, options?: { space?: string | null; user_id?: string }): Promise<Summary>;
  /** Update the summary now, also after an update has failed. */
  refreshSummary(session_id: string, options?: { space?: string | null; user_id?: string }): Promise<Summary>;
  /** Try a summary prompt on this conversation, and store nothing. */
  previewSummary(session_id: string, options?: { space?: string | null; /** The name of a summary prompt. */ prompt?: string | null; /** Instead of `prompt`: a template, as for `PUT /api/prompts/{name}`. */ text?: string | null; user_id?: string }): Promise<SummaryPreview>;
  /** List the facts that are true now, or were true at `as_of`. */
  facts(options?: { space?: string | null; session_id?: string | null; /** Words, or parts of words, that the text must contain. */ q?: string | null; /** One of identity, preference, plan, event, requirement, constraint, relationship, work, other, or a category of the rules (`/api/rules`). */ category?: string | null; /** List what was true at this time, not what is true now. */ as_of?: string | Date | null; /** `waiting`: facts that wait for review, instead of those that are true. */ state?: "valid" | "waiting"; user_id?: string }): Listing<Fact, FactPage>;
  /** Add a fact, to one session or to all sessions of a person. */
  addFact(text: string, options?: { space?: string | null; session_id?: string | null; /** One of identity, preference, plan, event, requirement, constraint, relationship, work, other, or a category of the rules (`/api/rules`). */ category?: string; importance?: number; pinned?: boolean; /** When it stops being true by itself. Null: never. */ expires_at?: string | Date | null; user_id?: string }): Promise<Fact>;
  /** Read a fact, also one that is no longer true. */
  getFact(fact_id: number, options?: { space?: string | null; user_id?: string }): Promise<Fact>;
  /** Edit or pin a fact. */
  changeFact(fact_id: number, options?: { text?: string; /** One of identity, preference, plan, event, requirement, constraint, relationship, work, other, or a category of the rules (`/api/rules`). */ category?: string; importance?: number; scope?: "session" | "user"; pinned?: boolean; /** When it stops being true by itself. Null: never. */ expires_at?: string | Date | null; user_id?: string }): Promise<Fact>;
  /** Forget a fact, with its history. */
  forgetFact(fact_id: number, options?: { space?: string | null; /** The facts that it corrected hold again, and are not forgotten. */ restore?: boolean; user_id?: string }): Promise<Receipt>;
  /** Forget up to 1,000 facts, with their history. */
  forgetFacts(ids: number[], options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Accept facts that wait for review, and refuse others. */
  reviewFacts(options?: { space?: string | null; /** Ids of facts that wait. */ accepted?: number[]; /** Ids of facts that wait. */ refused?: number[]; user_id?: string }): Promise<ReviewedFacts>;
  /** Read how a fact, and the facts that it corrected, changed. */
  factHistory(fact_id: number, options?: { space?: string | null; user_id?: string }): Promise<FactRevisionList>;
  /** List what jobs closed of a space's facts to bring them together, the newest run first. */
  listConsolidationsOfSpace(space: string): Promise<ConsolidationRunList>;
  /** Bring a space's facts together now, in a job. */
  consolidateOfSpace(space: string): Promise<undefined>;
  /** List what jobs closed of a person's facts to bring them together, the newest run first. */
  listConsolidations(options?: { user_id?: string }): Promise<ConsolidationRunList>;
  /** Bring a person's facts together now, in a job. */
  consolidate(options?: { user_id?: string }): Promise<undefined>;
  /** Undo the newest run: the facts that it closed hold again. */
  undoConsolidationOfSpace(space: string): Promise<ConsolidationRun>;
  /** Undo the newest run: the facts that it closed hold again. */
  undoConsolidation(options?: { user_id?: string }): Promise<ConsolidationRun>;
  /** Add a document, as text or as a file, to what is known of a person. */
  addDocument(text: string, options?: { space?: string | null; /** The document is of the owner of this session: of its person, or of the session itself. */ session_id?: string | null; /** Without it, Recap takes the one that the document has. */ title?: string | null; /** Where it is from; shown wherever it is quoted. */ uri?: string | null; /** The application's own name for it. A document sent with the same one replaces it. */ external_id?: string | null; media_type?: "text/plain" | "text/markdown" | "text/html"; user_id?: string }): Promise<Document>;
  /** Add a document, as text or as a file, to what is known of a person. */
  uploadDocument(file: Blob, options?: { space?: string | null; /** The document is of the owner of this session: of its person, or of the session itself. */ session_id?: string | null; /** Without it, Recap takes the one that the document has. */ title?: string | null; /** Where it is from; shown wherever it is quoted. */ uri?: string | null; /** The application's own name for it. A document sent with the same one replaces it. */ external_id?: string | null; user_id?: string }): Promise<Document>;
  /** List a person's documents, newest first. */
  listDocuments(options?: { space?: string | null; /** Those of this session's owner. */ session_id?: string | null; user_id?: string }): Listing<Document, DocumentPage>;
  /** Read what is known of a document. */
  getDocument(document_id: string, options?: { space?: string | null; user_id?: string }): Promise<Document>;
  /** Delete a document with all its passages, for good. */
  deleteDocument(document_id: string, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Read a document's text, passage by passage. */
  listPassages(document_id: string, options?: { space?: string | null; user_id?: string }): Listing<Passage, PassagePage>;
  /** Read the links around a person, place or thing, the nearest first. */
  readGraph(options?: { space?: string | null; session_id?: string | null; /** The name to start from: `Ida`, `my sister`, or `user` for the person. */ entity?: string; /** How many steps away from the entity links may be. */ depth?: number; /** List what was true at this time, not what is true now. */ as_of?: string | Date | null; user_id?: string }): Listing<Edge, EdgePage>;
  /** Search a person's past messages, or one session's. */
  search(q: string, options?: { space?: string | null; session_id?: string | null; /** Said at this time or later. */ after?: string | Date | null; /** Said before this time. */ before?: string | Date | null; role?: "user" | "assistant" | "system" | "tool" | null; /** What is searched: messages, and the passages of documents beside them; passages alone (`document`); or the summaries of sessions, or facts, which come with the messages that they were taken from. */ kind?: "message" | "document" | "summary" | "fact"; limit?: number; /** Messages around each result. */ window?: number; /** Where the days of `q` begin: what it says of times is preferred, not demanded. */ timezone?: string; user_id?: string }): Promise<SearchResults>;
  /** Get what a prompt for a message would show of the memory. */
  recall(message: string, options?: { space?: string | null; /** The zone in which the person's days begin: of words like `yesterday`, and of the times that models see. Later turns of the session keep it, and sessions that the person begins later. The default is the setting TIMEZONE. */ timezone?: string | null; /** Spaces whose memory is read too. The default, with a person's key outside of a `space`: those it names. */ spaces?: string[] | null; /** In a `space`: whether the memory of the person who acts is read too, though the reply is the space's. The default is true with the person's own key, else false. */ person?: boolean | null; /** What was said just before, if Recap has not stored it: it tells what the message refers to. A chat takes it only with `temporary`. */ history?: Said[]; /** Its summary and facts are shown too. */ session_id?: string | null; /** The most tokens that the block takes. */ tokens?: number; /** `always`: the nearest excerpts, however near; else as in a turn. */ recall?: "auto" | "always" | "off" | null; user_id?: string }): Promise<RecallBlock>;
  /** Mark a recalled excerpt as not helpful. */
  addUnhelpful(session_id: string, message_id: number, hits: number[], options?: { space?: string | null; user_id?: string }): Promise<Unhelpful>;
  /** List the excerpts that a person marked as not helpful, newest first. */
  listUnhelpful(options?: { space?: string | null; /** Those of this session's owner. */ session_id?: string | null; /** Marks of this question, or with this message. */ message_id?: number | null; user_id?: string }): Listing<Unhelpful, UnhelpfulPage>;
  /** Take a mark back: the excerpt counts as before. */
  deleteUnhelpful(mark_id: number, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Store an item, in the place of one with its name. */
  putItem(namespace: string[], key: string, value: any, options?: { space?: string | null; /** Only in the place of this version; 0: only where there is no item. Otherwise the answer is 409. */ version?: number | null; /** Minutes to live. */ ttl?: number | null; refresh_on_read?: boolean; /** Where queries look in this value: paths such as `title` or `notes[*].text`; an empty list: nowhere. Null: where the `fields` of the search say. */ index?: string[] | null; user_id?: string }): Promise<Item>;
  /** Read an item. */
  getItem(namespace: string[], key: string, options?: { space?: string | null; /** False: reading does not postpone when an item expires. */ refresh?: boolean; user_id?: string }): Promise<Item>;
  /** Erase an item, for good. */
  deleteItem(namespace: string[], key: string, options?: { space?: string | null; /** Only this version. */ version?: number | null; user_id?: string }): Promise<Receipt>;
  /** Search items, newest first or by a query. */
  searchItems(namespace_prefix?: string[], options?: { space?: string | null; /** Keys of the value, nested as it is, and what they are: `{"size": {"$gt": 3}, "by": {"name": "Ada"}}`; or a path of keys, such as `by.name`. The operators are $eq, $ne, $gt, $gte, $lt, $lte and $in. Numbers compare as numbers, texts by their characters. */ filter?: Record<string, any>; /** Find items by words and meaning, the best first. */ query?: string | null; /** Where the `query` looks: paths such as `title` or `notes[*].text`. None: in all texts. */ fields?: string[]; limit?: number; offset?: number; /** False: reading does not postpone when an item expires. */ refresh?: boolean; user_id?: string }): Promise<Found>;
  /** List the namespaces that have items, in alphabetical order. */
  listNamespaces(options?: { space?: string | null; /** How they begin; `*` is any part. */ prefix?: string[]; /** How they end; `*` is any part. */ suffix?: string[]; /** Cut them to so many parts. */ max_depth?: number | null; limit?: number; offset?: number; user_id?: string }): Promise<NamespaceList>;
  /** Run up to 1,000 operations in one transaction. */
  batch(operations: (Record<string, any>)[], options?: { space?: string | null; user_id?: string }): Promise<Results>;
  /** Read the profile as it is, or as it was at `as_of`. */
  getProfileOfSpace(space: string, options?: { /** Read the version of this time. */ as_of?: string | Date | null }): Promise<Profile>;
  /** Edit the profile by a JSON Patch (RFC 6902). */
  editProfileOfSpace(space: string, patch: Operation[], options?: { /** 409 if it is not the newest version. */ expected_version?: number | null }): Promise<Profile>;
  /** Read the profile as it is, or as it was at `as_of`. */
  profile(options?: { /** Read the version of this time. */ as_of?: string | Date | null; user_id?: string }): Promise<Profile>;
  /** Edit the profile by a JSON Patch (RFC 6902). */
  editProfile(patch: Operation[], options?: { /** 409 if it is not the newest version. */ expected_version?: number | null; user_id?: string }): Promise<Profile>;
  /** List all versions of the profile, newest first. */
  listProfileVersionsOfSpace(space: string): Listing<Profile, ProfilePage>;
  /** List all versions of the profile, newest first. */
  listProfileVersions(options?: { user_id?: string }): Listing<Profile, ProfilePage>;
  /** Bring an earlier version of the profile back, as a new version. */
  rollBackProfileOfSpace(space: string, version: number): Promise<Profile>;
  /** Bring an earlier version of the profile back, as a new version. */
  rollBackProfile(version: number, options?: { user_id?: string }): Promise<Profile>;
  /** Have the mini model read the new facts about the space now, also after an update has failed. */
  refreshProfileOfSpace(space: string): Promise<Profile>;
  /** Have the mini model read the new facts about the person now, also after an update has failed. */
  refreshProfile(options?: { user_id?: string }): Promise<Profile>;
  /** Read the JSON Schema of the tenant's profiles. */
  getProfileSchema(options?: { /** Whose profiles: of persons, or of spaces. */ kind?: "user" | "space" }): Promise<SchemaOfProfiles>;
  /** Set the JSON Schema (2020-12) of the tenant's profiles. */
  setProfileSchema(schema: any): Promise<SchemaOfProfiles>;
  /** Read the overview as it is, and whether it is being written. */
  getOverviewOfSpace(space: string): Promise<Overview>;
  /** Set the sentences of the overview. */
  editOverviewOfSpace(space: string, sentences: WrittenSentence[], options?: { /** 409 if it is not the newest version. */ expected_version?: number | null }): Promise<Overview>;
  /** Read the overview as it is, and whether it is being written. */
  getOverview(options?: { user_id?: string }): Promise<Overview>;
  /** Set the sentences of the overview. */
  editOverview(sentences: WrittenSentence[], options?: { /** 409 if it is not the newest version. */ expected_version?: number | null; user_id?: string }): Promise<Overview>;
  /** List all versions of the overview, newest first. */
  listOverviewVersionsOfSpace(space: string): Listing<OverviewVersion, OverviewVersionPage>;
  /** List all versions of the overview, newest first. */
  listOverviewVersions(options?: { user_id?: string }): Listing<OverviewVersion, OverviewVersionPage>;
  /** Bring an earlier version of the overview back, as a new version. */
  rollBackOverviewOfSpace(space: string, version: number): Promise<Overview>;
  /** Bring an earlier version of the overview back, as a new version. */
  rollBackOverview(version: number, options?: { user_id?: string }): Promise<Overview>;
  /** Have the mini model write the overview now, also after an update has failed. */
  refreshOverviewOfSpace(space: string): Promise<Overview>;
  /** Have the mini model write the overview now, also after an update has failed. */
  refreshOverview(options?: { user_id?: string }): Promise<Overview>;
  /** Add an example, or make one of an exchange. */
  addExample(options?: { space?: string | null; input?: string; output?: string; /** A message, calls of tools, the answer. */ messages?: ExampleMessage[]; /** With `message_id`, instead of `input` and `output`: an exchange. */ session_id?: string; /** The id of the exchange's message or of its reply. */ message_id?: number; tags?: string[]; /** How good the answer is, from 1 to 5. Of similar examples the best rated come first. */ rating?: number; user_id?: string }): Promise<Example>;
  /** List the examples of a user or, without a `user_id`, those for all of the tenant, newest first. */
  listExamples(options?: { space?: string | null; /** Those of this session's owner. */ session_id?: string | null; user_id?: string }): Listing<Example, ExamplePage>;
  /** Erase an example, for good. */
  deleteExample(example_id: number, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** List the persons of whom something is stored, the newest first. */
  listUsers(): Listing<ListedUser, ListedUserPage>;
  /** Read how much is stored of a space. */
  getSpace(space: string): Promise<User>;
  /** Turn the memory of a space off, or on again. */
  changeSpace(space: string, options?: { /** False: memory is off for this person, in every session and for every client. No turn recalls, shows or learns anything beyond its own session, and programs get nothing of the memory through MCP. */ remember?: boolean }): Promise<User>;
  /** Erase everything of a space, for good. */
  eraseSpace(space: string): Promise<Receipt>;
  /** Read how much is stored of a person. */
  getUser(options?: { user_id?: string }): Promise<User>;
  /** Turn the memory of a person off, or on again. */
  changeUser(options?: { /** False: memory is off for this person, in every session and for every client. No turn recalls, shows or learns anything beyond its own session, and programs get nothing of the memory through MCP. */ remember?: boolean; user_id?: string }): Promise<User>;
  /** Erase everything of a person, for good. */
  eraseUser(options?: { user_id?: string }): Promise<Receipt>;
  /** Export everything of a space as one JSON document, or as Markdown to read. */
  exportSpace(space: string, options?: { format?: "json" | "markdown" }): Promise<ExportDocument | string>;
  /** Export everything of a person as one JSON document, or as Markdown to read. */
  export(options?: { format?: "json" | "markdown"; user_id?: string }): Promise<ExportDocument | string>;
  /** Import an export of Recap or of another program, or chats as JSON, JSON Lines or Markdown. */
  importChats(document: any | Blob | BufferSource, options?: { user_id?: string }): Promise<Imported>;
  /** Read how much of a space's sessions no summary covers. */
  getBacklogOfSpace(space: string): Promise<Backlog>;
  /** Summarise all of a space's sessions, and take facts from them. */
  summariseBacklogOfSpace(space: string): Promise<Backlog>;
  /** Cancel the updates of summaries that have not begun. */
  cancelBacklogOfSpace(space: string): Promise<Backlog>;
  /** Read how much of a person's sessions no summary covers. */
  getBacklog(options?: { user_id?: string }): Promise<Backlog>;
  /** Summarise all of a person's sessions, and take facts from them. */
  summariseBacklog(options?: { user_id?: string }): Promise<Backlog>;
  /** Cancel the updates of summaries that have not begun. */
  cancelBacklog(options?: { user_id?: string }): Promise<Backlog>;
  /** Read the tenant, the person and the scopes of the request's key, and what it may do. */
  whoami(): Promise<Me>;
  /** List the spaces that the key opens. */
  listSpaces(): Listing<Space, SpacePage>;
  /** Read which sessions of the tenant stay. */
  getRetention(): Promise<RetentionPolicy>;
  /** Set which sessions of the tenant stay. */
  putRetention(options?: { /** Days after its last message or import that a session stays; null: any number. */ days?: number | null; /** Number of each person's newest sessions that stay; null: all. */ sessions?: number | null; /** Whether a session that is taken out becomes an archive. Else it is erased. */ archive?: boolean }): Promise<RetentionPolicy>;
  /** List the archives of sessions that were taken out of memory, newest first. */
  listArchives(options?: { space?: string | null; session_id?: string | null; user_id?: string }): Listing<Archive, ArchivePage>;
  /** Read an archive, as a document that can be imported. */
  getArchive(archive_id: number, options?: { space?: string | null; user_id?: string }): Promise<ExportDocument>;
  /** Erase an archive, for good. */
  eraseArchive(archive_id: number, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Bring an archived session back into memory, and delete the archive. */
  restoreArchive(archive_id: number, options?: { space?: string | null; user_id?: string }): Promise<Imported>;
  /** Read the person's rules or, without a user_id, the tenant's, which hold for each person. */
  getRules(options?: { space?: string | null; user_id?: string }): Promise<RulesVersion>;
  /** Store new rules in the place of the ones before. */
  putRules(options?: { categories?: CategoryRule[]; /** What is kept out, in words that the mini model reads, as `health`. */ topics?: string[]; /** What is kept out wherever it stands: words, with `*` at either end for any letters, and `#` for a digit. */ words?: string[]; /** Whether facts that models found wait until somebody accepts them. */ review?: boolean; space?: string | null; /** 409 if it is not the newest version. */ expected_version?: number | null; /** Whether to close what they keep out of what is stored. Null: 409 if there is anything. */ close?: boolean | null; user_id?: string }): Promise<RulesVersion>;
  /** Erase the rules with all of their versions, for good; what they closed stays closed. */
  deleteRules(options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** List what rules would close of what is stored; nothing is stored. */
  previewRules(options?: { categories?: CategoryRule[]; /** What is kept out, in words that the mini model reads, as `health`. */ topics?: string[]; /** What is kept out wherever it stands: words, with `*` at either end for any letters, and `#` for a digit. */ words?: string[]; /** Whether facts that models found wait until somebody accepts them. */ review?: boolean; space?: string | null; user_id?: string }): Promise<RulesEffect>;
  /** List all versions of the rules, newest first. */
  listRulesVersions(options?: { space?: string | null; user_id?: string }): Promise<RulesVersionList>;
  /** Bring an earlier version back, as a new version. */
  rollBackRules(version: number, options?: { space?: string | null; /** Whether to close what they keep out of what is stored. Null: 409 if there is anything. */ close?: boolean | null; user_id?: string }): Promise<RulesVersion>;
  /** List the instructions that the person's prompts show, and those that have a proposal. */
  listInstructions(options?: { space?: string | null; user_id?: string }): Promise<InstructionList>;
  /** Read an instruction, and the proposal that waits for it. */
  getInstruction(instruction: string, options?: { space?: string | null; user_id?: string }): Promise<Instruction>;
  /** Store a new version of an instruction. */
  putInstruction(instruction: string, text: string, options?: { space?: string | null; /** 409 if it is not the newest version. */ expected_version?: number | null; user_id?: string }): Promise<Instruction>;
  /** Erase an instruction with all of its versions, for good. */
  deleteInstruction(instruction: string, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** List all versions, newest first, each with what it changed. */
  listInstructionVersions(instruction: string, options?: { space?: string | null; user_id?: string }): Promise<InstructionVersionList>;
  /** Bring an earlier version back, as a new version. */
  rollBackInstruction(instruction: string, version: number, options?: { space?: string | null; user_id?: string }): Promise<Instruction>;
  /** Accept the proposal, which makes it a new version, or refuse it. */
  decideProposal(instruction: string, accept: boolean, options?: { space?: string | null; user_id?: string }): Promise<Instruction>;
  /** List the types that are built in, the tenant's, and the person's own, which come before the tenant's. */
  listConversationTypes(options?: { space?: string | null; user_id?: string }): Promise<ConversationTypeList>;
  /** Read a type. */
  getConversationType(conversation_type: string, options?: { space?: string | null; user_id?: string }): Promise<ConversationType>;
  /** Add a type, or say what one of the same name does instead, also one that is built in. */
  putConversationType(conversation_type: string, options?: { /** Words that tell it; of a cue with several words, all have to be in one message. */ cues?: string[]; /** Stands beside the system prompt, from the next compaction on. */ prompt?: string; recall?: "auto" | "always" | "tools" | "off" | null; recall_tokens?: number | null; fact_tokens?: number | null; example_tokens?: number | null; /** Sections that come first in the summary, from the next compaction on. */ emphasis?: ("topic" | "requirements" | "constraints" | "excluded" | "data" | "open_questions" | "discussed")[]; space?: string | null; user_id?: string }): Promise<ConversationType>;
  /** Erase a type of one's own; one that is built in changes nothing from then on. */
  deleteConversationType(conversation_type: string, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Say what a person thinks of a reply, in the place of what they thought before. */
  giveFeedback(session_id: string, message_id: number, options?: { space?: string | null; /** `none` takes earlier ones back. */ thumbs?: "up" | "down" | "none" | null; text?: string; /** The name of the instruction that it may change. */ instruction?: string; user_id?: string }): Promise<FeedbackGiven>;
  /** List the prompts in use. */
  listPrompts(): Promise<PromptList>;
  /** Read a prompt. */
  getPrompt(name: string): Promise<Prompt>;
  /** Store a new version of a prompt. */
  putPrompt(name: string, text: string): Promise<Prompt>;
  /** Delete all stored versions of a prompt. */
  deletePrompt(name: string): Promise<PromptDeleted>;
  /** List the models that a chat can be answered by. */
  listModels(): Promise<ModelNames>;
  /** Read which model server is in use. */
  getModelServer(): Promise<ModelServer>;
  /** Store the model server. */
  putModelServer(options?: { /** Where an OpenAI-compatible API is; it usually ends in /v1. Empty: OpenAI. */ base_url?: string; /** The key for it. Empty: none. Null: the one in use, if `base_url` is the one in use too. */ api_key?: string | null; /** Empty: OPENAI_MODEL. */ main?: string; /** Empty: OPENAI_SUMMARY_MODEL. */ mini?: string }): Promise<ModelServer>;
  /** Forget the stored model server and its key. */
  deleteModelServer(): Promise<ModelServer>;
  /** Ask the models of a model server one short question. */
  testModelServer(options?: { /** Where an OpenAI-compatible API is; it usually ends in /v1. Empty: OpenAI. */ base_url?: string; /** The key for it. Empty: none. Null: the one in use, if `base_url` is the one in use too. */ api_key?: string | null; /** Empty: OPENAI_MODEL. */ main?: string; /** Empty: OPENAI_SUMMARY_MODEL. */ mini?: string }): Promise<ModelTried>;
  /** List the models of a model server, to choose from before it is stored. */
  listModelsOfServer(options?: { /** Where an OpenAI-compatible API is; it usually ends in /v1. Empty: OpenAI. */ base_url?: string; /** The key for it. Empty: none. Null: the one in use, if `base_url` is the one in use too. */ api_key?: string | null; /** Empty: OPENAI_MODEL. */ main?: string; /** Empty: OPENAI_SUMMARY_MODEL. */ mini?: string }): Promise<ModelsListed>;
  /** List jobs that wait, run or failed. */
  jobs(options?: { space?: string | null; state?: "pending" | "running" | "failed" | null; session_id?: string | null; user_id?: string }): Listing<Job, JobPage>;
  /** Retry a job now. */
  retryJob(job_id: number, options?: { space?: string | null; user_id?: string }): Promise<Job>;
  /** Cancel a job of the kind `consolidation`, also while it runs: it changes nothing then. */
  cancelJob(job_id: number, options?: { space?: string | null; user_id?: string }): Promise<undefined>;
  /** Follow the events of a person or, with a key of the whole tenant and no `user_id`, of all. */
  events(options?: { space?: string | null; /** Begin after this place, the `id:` of an event; for readers that can't send Last-Event-ID. */ after?: string | null; /** Only these types, separated by commas. */ types?: string; /** With what people and models said. */ words?: boolean; /** End the stream after so long. 0: only what there is now. */ seconds?: number; user_id?: string }): EventStream;
  /** List webhooks, each with its last deliveries. */
  listWebhooks(options?: { space?: string | null; user_id?: string }): Promise<WebhookList>;
  /** Make a webhook for the events of a person or, without a `user_id`, of the whole tenant. */
  createWebhook(url: string, options?: { space?: string | null; /** Empty: all. `message.stored`: a message was stored: said in a turn, appended, imported, or sent by a client's program; `summary.updated`: a session's summary has a new version; `fact.created`: a fact was made; `fact.corrected`: a fact was edited, superseded, merged, contradicted, excluded, ended, expired or reopened; `fact.forgotten`: a fact was deleted, by itself or with its message or session; `profile.updated`: a person's profile has a new version; `overview.updated`: the overview of a person has a new version; `document.stored`: a document was added or replaced; `document.erased`: a document was deleted; `job.failed`: a job failed for the last time, until somebody retries it; `person.erased`: everything of a person was erased; only those who listen to the whole tenant get this; `space.erased`: everything of a space was erased; told as `person.erased` is. */ types?: ("message.stored" | "summary.updated" | "fact.created" | "fact.corrected" | "fact.forgotten" | "profile.updated" | "overview.updated" | "document.stored" | "document.erased" | "job.failed" | "person.erased" | "space.erased")[]; /** With what people and models said. */ words?: boolean; user_id?: string }): Promise<WebhookMade>;
  /** Change, disable or enable a webhook. */
  changeWebhook(webhook_id: number, options?: { /** Where events are posted, by https. An address that is not public needs WEBHOOK_NETWORKS. */ url?: string; /** Empty: all. `message.stored`: a message was stored: said in a turn, appended, imported, or sent by a client's program; `summary.updated`: a session's summary has a new version; `fact.created`: a fact was made; `fact.corrected`: a fact was edited, superseded, merged, contradicted, excluded, ended, expired or reopened; `fact.forgotten`: a fact was deleted, by itself or with its message or session; `profile.updated`: a person's profile has a new version; `overview.updated`: the overview of a person has a new version; `document.stored`: a document was added or replaced; `document.erased`: a document was deleted; `job.failed`: a job failed for the last time, until somebody retries it; `person.erased`: everything of a person was erased; only those who listen to the whole tenant get this; `space.erased`: everything of a space was erased; told as `person.erased` is. */ types?: ("message.stored" | "summary.updated" | "fact.created" | "fact.corrected" | "fact.forgotten" | "profile.updated" | "overview.updated" | "document.stored" | "document.erased" | "job.failed" | "person.erased" | "space.erased")[]; /** With what people and models said. */ words?: boolean; /** `true` delivers everything since it was disabled. */ enabled?: boolean; user_id?: string }): Promise<Webhook>;
  /** Delete a webhook, with what waits for it. */
  deleteWebhook(webhook_id: number, options?: { space?: string | null; user_id?: string }): Promise<undefined>;
  /** Give a webhook a new secret. */
  rotateWebhook(webhook_id: number, options?: { /** How long deliveries are signed with the former secret as well; 0 if it has leaked. */ overlap_hours?: number; user_id?: string }): Promise<WebhookMade>;
  /** Post an event of the type `webhook.test`, and see how it went. */
  testWebhook(webhook_id: number, options?: { space?: string | null; user_id?: string }): Promise<Delivery>;
  /** Chat as with OpenAI, and be remembered. */
  complete(messages: (Record<string, any>)[], options?: { /** Passed on. Without it, and with the built-in model, the main model answers. */ model?: string | null; /** The person, unless a header or `safety_identifier` names one. */ user?: any; /** The person, unless a header names one. */ safety_identifier?: any; /** The session, unless a header names one. Not passed on. */ session_id?: any; /** Its `user_id` and `session_id` count where the body has none. */ metadata?: any; /** Of several choices, the first is stored. */ n?: any; user_id?: string; idempotency_key?: string; [more: string]: any }): Promise<Completion>;
  /** List the models: `recap`, which is the main model, and those of the model server. */
  listServedModels(): Promise<ModelList>;
  /** Read one model of the model server, or the built-in one. */
  getServedModel(model: string): Promise<Model>;
  /** Embed texts with the model server. */
  embed(options?: { /** Passed on. */ model?: string | null; [more: string]: any }): Promise<any>;
  /** Complete a text with the model server, as programs do to complete code. */
  completeText(options?: { /** Passed on. */ model?: string | null; [more: string]: any }): Promise<any>;
  /** Classify texts with the model server. */
  moderate(options?: { /** Passed on. */ model?: string | null; [more: string]: any }): Promise<any>;
  /** Chat as with Anthropic, and be remembered. */
  createMessage(messages: (Record<string, any>)[], max_tokens: number, options?: { /** Passed on. The built-in model answers to every name. */ model?: string | null; /** A string, or text blocks. */ system?: any; /** Tools of the client's own. */ tools?: (Record<string, any>)[] | null; tool_choice?: Record<string, any> | null; /** `user_id` names the person and `session_id` the session, unless headers do. */ metadata?: Record<string, any> | null; /** `format` and `effort` are passed on. */ output_config?: Record<string, any> | null; /** Passed on. */ stop_sequences?: any; /** Passed on. */ temperature?: any; /** Passed on. */ top_p?: any; /** Recap holds no threads: `create` is ignored, `continue` is answered with the error thread_not_found. */ thread?: Record<string, any> | null; /** The answer has what the model thinks, unless its type is `disabled`. */ thinking?: Record<string, any> | null; /** Ignored. */ top_k?: any; /** Ignored. */ cache_control?: any; /** Ignored. */ context_management?: any; /** Ignored. */ service_tier?: any; user_id?: string; idempotency_key?: string; [more: string]: any }): Promise<AnthropicMessage>;
  /** Estimate the tokens of a request. */
  countTokens(messages: (Record<string, any>)[], options?: { /** Passed on. The built-in model answers to every name. */ model?: string | null; /** A string, or text blocks. */ system?: any; /** Tools of the client's own. */ tools?: (Record<string, any>)[] | null; tool_choice?: Record<string, any> | null; [more: string]: any }): Promise<TokenCount>;
  /** Ask for a response as from OpenAI, and be remembered. */
  createResponse(input: any, options?: { /** Passed on. The built-in model answers to every name. */ model?: string | null; /** Holds for this request alone. */ instructions?: string | null; /** Go on from this response, in its session. What came after it is replaced. */ previous_response_id?: string | null; /** False: nothing is stored, and the memory is not used. */ store?: boolean | null; /** Tools of the types `function` and `custom`. */ tools?: (Record<string, any>)[] | null; tool_choice?: any; /** `format` is passed on as `response_format`. */ text?: Record<string, any> | null; /** `effort` is passed on. */ reasoning?: Record<string, any> | null; /** Passed on as `max_completion_tokens`. */ max_output_tokens?: number | null; /** Its `session_id` names the session, unless a header does. */ metadata?: Record<string, any> | null; /** The person, unless a header names one. */ safety_identifier?: any; /** Passed on. */ parallel_tool_calls?: any; /** Passed on. */ prompt_cache_key?: any; /** Passed on. */ temperature?: any; /** Passed on. */ top_p?: any; /** Ignored. */ include?: any; /** Ignored. */ max_tool_calls?: any; /** Ignored. */ prompt_cache_retention?: any; /** Ignored. */ service_tier?: any; /** Ignored. */ stream_options?: any; /** Ignored. */ top_logprobs?: any; /** Ignored. */ truncation?: any; /** Ignored. */ client_metadata?: any; /** The id of the session, or an object with it: input is new. */ conversation?: any; /** Refused. */ background?: boolean | null; user_id?: string; idempotency_key?: string; [more: string]: any }): Promise<ResponseObject>;
  /** Read a response that was stored. */
  getResponse(response_id: string, options?: { /** With `stream`: the `sequence_number` of the last event that arrived. */ starting_after?: number }): Promise<ResponseObject>;
  /** Erase a response and what it answers, for good, as single messages are erased. */
  deleteResponse(response_id: string): Promise<DeletedObject>;
  /** List the items that a response answers: those after the response before, oldest first. */
  listInputItems(response_id: string): Promise<ConversationItems>;
  /** Estimate the tokens of a request. */
  countInputTokens(input: any, options?: { /** Passed on. The built-in model answers to every name. */ model?: string | null; /** Holds for this request alone. */ instructions?: string | null; /** Go on from this response, in its session. What came after it is replaced. */ previous_response_id?: string | null; /** False: nothing is stored, and the memory is not used. */ store?: boolean | null; /** Tools of the types `function` and `custom`. */ tools?: (Record<string, any>)[] | null; tool_choice?: any; /** `format` is passed on as `response_format`. */ text?: Record<string, any> | null; /** `effort` is passed on. */ reasoning?: Record<string, any> | null; /** Passed on as `max_completion_tokens`. */ max_output_tokens?: number | null; /** Its `session_id` names the session, unless a header does. */ metadata?: Record<string, any> | null; /** The person, unless a header names one. */ safety_identifier?: any; /** Passed on. */ parallel_tool_calls?: any; /** Passed on. */ prompt_cache_key?: any; /** Passed on. */ temperature?: any; /** Passed on. */ top_p?: any; /** Ignored. */ include?: any; /** Ignored. */ max_tool_calls?: any; /** Ignored. */ prompt_cache_retention?: any; /** Ignored. */ service_tier?: any; /** Ignored. */ stream_options?: any; /** Ignored. */ top_logprobs?: any; /** Ignored. */ truncation?: any; /** Ignored. */ client_metadata?: any; /** The id of the session, or an object with it: input is new. */ conversation?: any; /** Refused. */ background?: boolean | null; user_id?: string; [more: string]: any }): Promise<InputTokens>;
  /** Begin a conversation. */
  createConversation(options?: { items?: (Record<string, any>)[] | null; metadata?: Record<string, string> | null; /** The person, unless a header names one. */ safety_identifier?: any; user_id?: string; [more: string]: any }): Promise<ConversationObject>;
  /** Read a conversation: any session by its id. */
  getConversation(conversation_id: string): Promise<ConversationObject>;
  /** Change what is kept with a conversation. */
  updateConversation(conversation_id: string, metadata: Record<string, string> | null, options?: { user_id?: string; [more: string]: any }): Promise<ConversationObject>;
  /** Erase a conversation with its items, as DELETE /api/sessions/{session_id} does. */
  deleteConversation(conversation_id: string): Promise<DeletedObject>;
  /** List the items of a conversation, newest first. */
  listItemsOfConversation(conversation_id: string, options?: { /** The id of an item: those after it are listed. */ after?: string | null; limit?: number; order?: "asc" | "desc" }): Promise<ConversationItems>;
  /** Append items to a conversation without asking a model. */
  createItems(conversation_id: string, options?: { items?: (Record<string, any>)[] | null; [more: string]: any }): Promise<ConversationItems>;
  /** Read an item of a conversation. */
  getItemOfConversation(conversation_id: string, item_id: string): Promise<ConversationItem>;
  /** Erase the message of an item, for good. */
  deleteItemOfConversation(conversation_id: string, item_id: string): Promise<ConversationObject>;
  /** Exchange one message of the Model Context Protocol. */
  mcp(jsonrpc: string, options?: { id?: any; method?: string; params?: Record<string, any>; result?: Record<string, any>; error?: Record<string, any>; user_id?: string }): Promise<RpcMessage>;
  /** Check that the process answers. */
  live(): Promise<Live>;
  /** Check that requests can be served, and by which models. */
  ready(): Promise<Ready>;
}
