// The JSON objects that calls take and answer, and a method for each call.
// Generated from the OpenAPI document by clients/generate.py (`make clients`): change that one instead.

import type { EventStream, Stream } from "./index.js";

export interface AnthropicMessage {
  id: string;
  type: "message";
  role: "assistant";
  model: string;
  content: (Record<string, any>)[];
  stop_reason: string;
  stop_sequence: string | null;
  usage: Record<string, any>;
  memory?: Record<string, any>;
}
export interface Appended {
  session: Session;
  message_ids: number[];
  created: number;
}
export interface Archive {
  id: number;
  user_id: string | null;
  space: string | null;
  session_id: string;
  title: string;
  message_count: number;
  first_message_at: string | null;
  last_message_at: string | null;
  created_at: string;
}
export interface ArchivePage {
  items: Archive[];
  next_cursor: string | null;
}
export interface Backlog {
  sessions: number;
  tokens: number;
  waiting: number;
  failed: number;
}
export interface Call {
  method: string;
  path: string;
  body?: Record<string, any>;
}
export interface CalledFunction {
  name: string;
  arguments?: string;
}
export interface CategoryRule {
  name: string;
  keep?: boolean;
  days?: number | null;
  about?: string;
}
export interface ChatReply {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: (Record<string, any>)[];
  usage: ChatUsage;
  session_id: string | null;
  user_message_id: number | null;
  message_id: number | null;
  reply: string;
  memory: Memory;
  notice?: string;
}
export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  estimated: boolean;
  full_history_tokens: number;
  saved_tokens: number;
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
  cues: string[];
  prompt: string;
  recall: "auto" | "always" | "tools" | "off" | null;
  recall_tokens: number | null;
  fact_tokens: number | null;
  example_tokens: number | null;
  emphasis: ("topic" | "requirements" | "constraints" | "excluded" | "data" | "open_questions" | "discussed")[];
  name: string;
  built_in: boolean;
  of_tenant: boolean;
}
export interface ConversationTypeList {
  items: ConversationType[];
}
export interface Correction {
  id: number;
  text: string;
  category: string;
  session_id: string | null;
  source_message_id: number | null;
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
  status: number | null;
  error: string | null;
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
  size: number;
  pages: number | null;
  passages: number;
  tokens: number;
  created_at: string;
  updated_at: string;
  state: string | null;
}
export interface DocumentPage {
  items: Document[];
  next_cursor: string | null;
}
export interface DocumentPlace {
  id: string;
  title: string;
  uri: string | null;
  page?: number;
}
export interface Edge {
  subject: Entity;
  relation: string;
  object: Entity;
  distance: number;
  fact_id: number;
  quote: string;
  session_id: string | null;
  source_message_id: number | null;
  valid_from: string;
  valid_to: string | null;
}
export interface EdgePage {
  items: Edge[];
  next_cursor: string | null;
}
export interface Entity {
  name: string;
  kind: string;
}
export interface Event {
  id: string;
  type: string;
  timestamp: string;
  data: EventData;
}
export interface EventData {
  user_id: string | null;
  space: string;
  session_id: string | null;
  message_id: number;
  role: string;
  position: number;
  created_at: string;
  content: string | null;
  name: string | null;
  version: number;
  through: number;
  author: string;
  sections: Record<string, any>;
  fact_id: number;
  action: string;
  category: string;
  importance: number;
  pinned: boolean;
  scope: string;
  superseded_by: number | null;
  text: string;
  profile: Record<string, any>;
  overview: Record<string, any>;
  job_id: number;
  kind: string;
  webhook_id: number;
}
export interface Example {
  id: number;
  input: string;
  output: string;
  messages: ExampleMessage[];
  tags: string[];
  rating: number;
  created_at: string;
}
export interface ExampleMessage {
  role: "user" | "assistant" | "tool";
  content?: string | null;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
}
export interface ExamplePage {
  items: Example[];
  next_cursor: string | null;
}
export interface Excerpt {
  session_id: string | null;
  document?: DocumentPlace;
  title: string;
  messages: ExcerptMessage[];
  hits: number[];
  score: number;
  why: Record<string, number>;
  summary: Gist | null;
}
export interface ExcerptMessage {
  id: number;
  position: number;
  role: string;
  name: string | null;
  content: string;
  created_at: string;
  page?: number | null;
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
  remember: boolean;
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
  source_position: number | null;
  quote: string;
  pinned: boolean;
  recalled_count: number;
  valid_from: string;
  valid_to: string | null;
  expires_at: string | null;
  superseded_by: number | null;
  merged: boolean;
  waiting: boolean;
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
  external_id: string | null;
  extra: Record<string, any> | null;
  erased_at: string | null;
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
  facts_through: number;
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
  through: number;
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
  scope: string;
  session_id: string | null;
  source_message_id: number | null;
  quote: string;
  pinned: boolean;
  recalled_count: number;
  valid_from: string;
  valid_to: string | null;
  expires_at: string | null;
  waiting: boolean;
  superseded_by: number | null;
  created_at: string;
  proof_count: number;
  proofs: Proof[];
  score: Record<string, number> | null;
}
export interface FactPage {
  items: Fact[];
  next_cursor: string | null;
}
export interface FactRevision {
  fact_id: number;
  action: string;
  author: string;
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
  state: string;
  created_at: string;
}
export interface Found {
  items: Item[];
}
export interface Gist {
  text: string;
  updated_at: string;
}
export interface Hidden {
  hidden: number[];
  shown: number[];
}
export interface Imported {
  format: string;
  created: Record<string, number>;
  known: Record<string, number>;
  renamed: Record<string, any>;
  skipped: number;
  skipped_items: string[];
  unread_times: string[];
}
export interface InputTokens {
  object: "response.input_tokens";
  input_tokens: number;
}
export interface Instruction {
  name: string;
  version: number;
  text: string;
  author: string | null;
  created_at: string | null;
  diff: string;
  of_tenant: boolean;
  proposal: Proposal | null;
}
export interface InstructionList {
  items: Instruction[];
}
export interface InstructionVersion {
  name: string;
  version: number;
  text: string;
  author: string | null;
  created_at: string | null;
  diff: string;
}
export interface InstructionVersionList {
  items: InstructionVersion[];
}
export interface Item {
  namespace: string[];
  key: string;
  value: any;
  version: number;
  ttl: number | null;
  refresh_on_read: boolean;
  expires_at: string | null;
  created_at: string;
  updated_at: string;
  index: string[] | null;
  score: number | null;
}
export interface Job {
  id: number;
  kind: string;
  state: string;
  session_id: string | null;
  attempts: number;
  run_at: string;
  error: string | null;
  position: number | null;
  age: number;
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
  position: number;
  role: string;
  name: string | null;
  content: string;
  created_at: string;
  external_id: string | null;
  tokens: number;
  extra: Record<string, any> | null;
  hidden_at: string | null;
  refused: Refused | null;
  thumbs: string | null;
}
export interface ListedMessagePage {
  items: ListedMessage[];
  next_cursor: string | null;
  previous_cursor: string | null;
}
export interface Live {
  status: string;
}
export interface Me {
  tenant: string;
  user_id: string | null;
  scopes: string[];
  spaces: Record<string, string> | null;
  may: Record<string, boolean>;
}
export interface Memory {
  summary: Record<string, any>;
  profile: ShownProfile;
  overview: ShownOverview;
  instructions: ShownText[];
  type: string | null;
  facts: ShownFact[];
  excerpts: Excerpt[];
  examples: Example[];
  others: OtherMemory[];
  recall: Record<string, any>;
  written: WrittenFact[];
  tail: Record<string, number>;
}
export interface Message {
  id: number;
  session_id: string;
  position: number;
  role: string;
  name: string | null;
  content: string;
  created_at: string;
  external_id: string | null;
  tokens: number;
  extra: Record<string, any> | null;
  hidden_at: string | null;
  refused: Refused | null;
}
export interface MessageToAppend {
  role: "user" | "assistant" | "system" | "tool";
  content: string;
  name?: string | null;
  created_at?: string | null;
  external_id?: string | null;
  extra?: Record<string, any> | null;
}
export interface Model {
}
export interface ModelCheck {
  task: string;
  model: string;
  address: string;
  works: boolean;
  problem: string | null;
  seconds: number;
  reply: string;
  window: number | null;
  learned: string[];
  warnings: string[];
}
export interface ModelList {
  data: Model[];
}
export interface ModelNames {
  main: string;
  items: string[];
}
export interface ModelServer {
  source: string;
  base_url: string;
  main: string;
  mini: string;
  key_end: string | null;
  refusal: string | null;
  problem: string | null;
}
export interface ModelTried {
  model: string;
  reply: string;
  seconds: number;
  checks: ModelCheck[];
}
export interface ModelsListed {
  items: string[];
}
export interface NamespaceList {
  namespaces: string[][];
}
export interface Operation {
  op: "add" | "remove" | "replace" | "move" | "copy" | "test";
  path: string;
  value?: any;
  from?: string;
}
export interface OtherMemory {
  space: string | null;
  facts: ShownFact[];
  excerpts: Excerpt[];
}
export interface Overview {
  version: number;
  sentences: Sentence[];
  author: string | null;
  created_at: string | null;
  is_shown: boolean;
  is_updating: boolean;
  error: string | null;
}
export interface OverviewSource {
  session_id: string;
  version: number;
}
export interface OverviewVersion {
  version: number;
  sentences: Sentence[];
  author: string | null;
  created_at: string | null;
}
export interface OverviewVersionPage {
  items: OverviewVersion[];
  next_cursor: string | null;
}
export interface Passage {
  message_id: number;
  position: number;
  page: number | null;
  text: string;
}
export interface PassagePage {
  items: Passage[];
  next_cursor: string | null;
}
export interface Profile {
  version: number;
  document: Record<string, any>;
  sources: any;
  author: string | null;
  created_at: string | null;
}
export interface ProfilePage {
  items: Profile[];
  next_cursor: string | null;
}
export interface Prompt {
  name: string;
  version: number;
  source: string;
  text: string;
  created_at: string | null;
}
export interface PromptDeleted {
  name: string;
  versions: number;
}
export interface PromptList {
  items: Prompt[];
}
export interface Proof {
  id: number;
  text: string;
  quote: string;
  session_id: string | null;
  source_message_id: number | null;
  valid_from: string;
}
export interface Proposal {
  text: string;
  reason: string;
  quote: string;
  diff: string;
  created_at: string;
}
export interface Ready {
  status: string;
  database: string;
  data_dir: string;
  model: Record<string, any>;
  notice?: string;
  recall: string;
  summary_prompt: string;
  jobs: Record<string, number>;
  jobs_late?: string;
  embeddings?: string;
  webhooks?: string;
  rate_limits?: string;
}
export interface RecallBlock {
  block: string;
  tokens: number;
  memory: Memory;
}
export interface Receipt {
  erased: Record<string, number>;
  pending: string[];
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
  forgotten?: number;
}
export interface Refused {
  code: string;
  reason: string;
  at: string;
}
export interface RelatedSession {
  session_id: string;
  title: string;
  updated_at: string;
  score: number;
  why: Record<string, any>;
}
export interface RelatedSessionList {
  items: RelatedSession[];
}
export interface ResponseObject {
  id: string;
  object: "response";
  created_at: number;
  status: string;
  model: string;
  output: (Record<string, any>)[];
  usage: Record<string, any>;
}
export interface Result {
  item?: Item | null;
  erased?: Record<string, number>;
  items?: Item[];
  namespaces?: string[][];
}
export interface Results {
  results: Result[];
}
export interface RetentionPolicy {
  days?: number | null;
  sessions?: number | null;
  archive?: boolean;
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
  topics: string[];
  words: string[];
  review: boolean;
}
export interface RulesEffect {
  facts: ClosedFact[];
  fact_count: number;
  summaries: number;
  profiles: number;
}
export interface RulesVersion {
  version: number;
  rules: RuleSet;
  in_force: RuleSet;
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
  kind: string;
  document: DocumentPlace | null;
  text: string | null;
  message_id: number | null;
  external_id: string | null;
  session_id: string | null;
  title: string | null;
  position: number | null;
  role: string | null;
  name: string | null;
  content: string | null;
  created_at: string | null;
  score: number;
  why: Record<string, number>;
  highlights: string[];
  window: Message[];
  corrections: Correction[];
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
  facts: number[];
  summaries: any;
  author: string;
}
export interface Session {
  id: string;
  user_id: string | null;
  space: string | null;
  title: string;
  system_prompt: string | null;
  pinned: boolean;
  archived: boolean;
  remember: boolean;
  type: string | null;
  message_count: number;
  tokens: number;
  summary_version: number;
  created_at: string;
  updated_at: string;
  imported_at: string | null;
  busy: boolean;
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
  source_message_id: number | null;
  valid_from: string;
  score: Record<string, number> | null;
}
export interface ShownOverview {
  version: number;
  sentences: Sentence[];
}
export interface ShownProfile {
  version: number;
  values: any;
}
export interface ShownText {
  kind: "instruction" | "type";
  name: string;
  version: number;
  text: string;
  of_tenant: boolean;
}
export interface Space {
  name: string;
  right: "read" | "write";
  created_at: string | null;
}
export interface SpacePage {
  items: Space[];
  next_cursor: string | null;
}
export interface Stopping {
  stopping: boolean;
}
export interface Summary {
  session_id: string;
  state: string;
  error: string | null;
  job_id: number | null;
  head_version: number;
  message_count: number;
  latest: SummaryVersion | null;
}
export interface SummaryPreview {
  sections: Sections;
  tokens: number;
  through: number;
  model: string | null;
  prompt: string | null;
  usage: Record<string, any> | null;
  since: number;
  current_version: number;
}
export interface SummaryVersion {
  sections: Sections;
  tokens: number;
  through: number;
  model: string | null;
  prompt: string | null;
  usage: Record<string, any> | null;
  version: number;
  author: string;
  restores: number | null;
  replaced: boolean;
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
  message_id: number | null;
  state: string;
  so_far: string | null;
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
  message_id: number | null;
  state: string;
  so_far: string | null;
  model: string | null;
  finish_reason: string | null;
  usage: ChatUsage | null;
  started_at: string;
  finished_at: string | null;
  memory: Memory | null;
}
export interface Unhelpful {
  id: number;
  session_id: string;
  message_id: number;
  question: string;
  excerpt_session_id: string | null;
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
  remember: boolean;
  sessions: number;
  messages: number;
  facts: number;
  items: number;
  documents: number;
  archives: number;
  summaries: number;
  created_at: string;
  first_message_at: string | null;
  last_message_at: string | null;
  tokens_today: number;
  facts_forgotten: number;
  last_forgotten_at: string | null;
}
export interface Versions {
  message_id: number;
  versions: number[];
}
export interface VersionsList {
  items: Versions[];
}
export interface Webhook {
  id: number;
  user_id: string | null;
  space: string | null;
  url: string;
  types: string[];
  words: boolean;
  enabled: boolean;
  failing_since: string | null;
  problem: string | null;
  deliveries: Delivery[];
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
  types: string[];
  words: boolean;
  enabled: boolean;
  failing_since: string | null;
  problem: string | null;
  deliveries: Delivery[];
  created_at: string;
  updated_at: string;
  secret: string;
}
export interface WrittenFact {
  action: "remember" | "correct" | "forget";
  fact_id: number;
  text: string | null;
  quote: string | null;
  replaces: string | null;
  undo: Call | null;
}
export interface WrittenSentence {
  text: string;
  facts?: number[];
  summaries?: OverviewSource[];
}
export declare class Operations {
  /** Send a message and get the reply. */
  chat(message: string | Record<string, any>, options?: { space?: string | null; timezone?: string | null; spaces?: string[] | null; person?: boolean | null; history?: Said[]; session_id?: string | null; name?: string | null; recall?: "auto" | "always" | "tools" | "off" | null; model?: string | null; remember?: boolean; prompt?: string | null; system_prompt?: string | null; temporary?: boolean; replaces?: number | null; user_id?: string; idempotency_key?: string }): Promise<ChatReply>;
  /** Send a message and get the reply. */
  stream(message: string | Record<string, any>, options?: { space?: string | null; timezone?: string | null; spaces?: string[] | null; person?: boolean | null; history?: Said[]; session_id?: string | null; name?: string | null; recall?: "auto" | "always" | "tools" | "off" | null; model?: string | null; remember?: boolean; prompt?: string | null; system_prompt?: string | null; temporary?: boolean; replaces?: number | null; user_id?: string; idempotency_key?: string }): Stream;
  /** List sessions, newest first. */
  sessions(options?: { space?: string | null; q?: string | null; pinned?: boolean | null; archived?: boolean | null; before?: string | null; after?: string | null; except_user_id?: string | null; user_id?: string }): AsyncGenerator<Session>;
  /** Create an empty session. */
  createSession(options?: { space?: string | null; session_id?: string | null; title?: string; system_prompt?: string | null; remember?: boolean; user_id?: string }): Promise<Session>;
  /** Read a session. */
  session(session_id: string, options?: { space?: string | null; user_id?: string }): Promise<Session>;
  /** Rename, pin or archive a session, turn its memory off, or set its system prompt or type. */
  changeSession(session_id: string, options?: { title?: string; system_prompt?: string | null; pinned?: boolean; archived?: boolean; remember?: boolean; type?: string | null; user_id?: string }): Promise<Session>;
  /** Erase a session with its messages, summaries and facts, for good. */
  eraseSession(session_id: string, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Read a session's messages, word for word. */
  messages(session_id: string, options?: { space?: string | null; order?: "asc" | "desc"; around?: number | null; branch?: number; user_id?: string }): AsyncGenerator<ListedMessage>;
  /** Append or import messages without calling a model. */
  addMessages(session_id: string, messages: MessageToAppend[], options?: { space?: string | null; user_id?: string }): Promise<Appended>;
  /** Erase a message, for good. */
  eraseMessage(session_id: string, message_id: number, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Take messages out of the session's prompts. */
  hideMessages(session_id: string, options?: { space?: string | null; first?: number; last?: number; ids?: number[]; keep?: boolean; tokens?: number | null; user_id?: string }): Promise<Hidden>;
  /** Put hidden messages back into the session's prompts, all or those named. */
  showMessages(session_id: string, options?: { space?: string | null; first?: number; last?: number; ids?: number[]; user_id?: string }): Promise<Hidden>;
  /** List the messages that have other versions. */
  listMessageVersions(session_id: string, options?: { space?: string | null; user_id?: string }): Promise<VersionsList>;
  /** Bring a version of a message back. */
  restoreMessage(session_id: string, message_id: number, options?: { space?: string | null; user_id?: string }): Promise<Session>;
  /** List the person's conversations that belong together with this one, the closest first. */
  listRelatedSessions(session_id: string, options?: { space?: string | null; limit?: number; user_id?: string }): Promise<RelatedSessionList>;
  /** Stop the reply that is being written. */
  stopReply(session_id: string, options?: { space?: string | null; user_id?: string }): Promise<Stopping>;
  /** List a session's turns, newest first. */
  listTurns(session_id: string, options?: { space?: string | null; order?: "asc" | "desc"; user_id?: string }): AsyncGenerator<Turn>;
  /** Read one turn, named by its message or its reply, with the memory its prompt showed. */
  getTurn(session_id: string, message_id: number, options?: { space?: string | null; user_id?: string }): Promise<TurnWithMemory>;
  /** Read the newest summary, and whether it is up to date. */
  summary(session_id: string, options?: { space?: string | null; user_id?: string }): Promise<Summary>;
  /** Replace the summary with an edited one. */
  editSummary(session_id: string, sections: Sections, options?: { space?: string | null; expected_version?: number | null; user_id?: string }): Promise<Summary>;
  /** List all versions, newest first. */
  listSummaryVersions(session_id: string, options?: { space?: string | null; user_id?: string }): AsyncGenerator<SummaryVersion>;
  /** Bring an earlier version back, as a new version. */
  rollBackSummary(session_id: string, version: number, options?: { space?: string | null; user_id?: string }): Promise<Summary>;
  /** Update the summary now, also after an update has failed. */
  refreshSummary(session_id: string, options?: { space?: string | null; user_id?: string }): Promise<Summary>;
  /** Try a summary prompt on this conversation, and store nothing. */
  previewSummary(session_id: string, options?: { space?: string | null; prompt?: string | null; text?: string | null; user_id?: string }): Promise<SummaryPreview>;
  /** List the facts that are true now, or were true at `as_of`. */
  facts(options?: { space?: string | null; session_id?: string | null; q?: string | null; category?: string | null; as_of?: string | null; state?: "valid" | "waiting"; user_id?: string }): AsyncGenerator<Fact>;
  /** Add a fact, to one session or to all sessions of a person. */
  addFact(text: string, options?: { space?: string | null; session_id?: string | null; category?: string; importance?: number; pinned?: boolean; expires_at?: string | null; user_id?: string }): Promise<Fact>;
  /** Edit or pin a fact. */
  changeFact(fact_id: number, options?: { text?: string; category?: string; importance?: number; scope?: "session" | "user"; pinned?: boolean; expires_at?: string | null; user_id?: string }): Promise<Fact>;
  /** Forget a fact, with its history. */
  forgetFact(fact_id: number, options?: { space?: string | null; restore?: boolean; user_id?: string }): Promise<Receipt>;
  /** Forget up to 1,000 facts, with their history. */
  forgetFacts(ids: number[], options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Accept facts that wait for review, and refuse others. */
  reviewFacts(options?: { space?: string | null; accepted?: number[]; refused?: number[]; user_id?: string }): Promise<ReviewedFacts>;
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
  addDocument(text: string, options?: { space?: string | null; session_id?: string | null; title?: string | null; uri?: string | null; external_id?: string | null; media_type?: "text/plain" | "text/markdown" | "text/html"; user_id?: string }): Promise<Document>;
  /** Add a document, as text or as a file, to what is known of a person. */
  uploadDocument(file: Blob, options?: { space?: string | null; session_id?: string | null; title?: string | null; uri?: string | null; external_id?: string | null; user_id?: string }): Promise<Document>;
  /** List a person's documents, newest first. */
  listDocuments(options?: { space?: string | null; session_id?: string | null; user_id?: string }): AsyncGenerator<Document>;
  /** Read what is known of a document. */
  getDocument(document_id: string, options?: { space?: string | null; user_id?: string }): Promise<Document>;
  /** Delete a document with all its passages, for good. */
  deleteDocument(document_id: string, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Read a document's text, passage by passage. */
  listPassages(document_id: string, options?: { space?: string | null; user_id?: string }): AsyncGenerator<Passage>;
  /** Read the links around a person, place or thing, the nearest first. */
  readGraph(options?: { space?: string | null; session_id?: string | null; entity?: string; depth?: number; as_of?: string | null; user_id?: string }): AsyncGenerator<Edge>;
  /** Search a person's past messages, or one session's. */
  search(q: string, options?: { space?: string | null; session_id?: string | null; after?: string | null; before?: string | null; role?: "user" | "assistant" | "system" | "tool" | null; kind?: "message" | "document" | "summary" | "fact"; limit?: number; window?: number; timezone?: string; user_id?: string }): Promise<SearchResults>;
  /** Get what a prompt for a message would show of the memory. */
  recall(message: string, options?: { space?: string | null; timezone?: string | null; spaces?: string[] | null; person?: boolean | null; history?: Said[]; session_id?: string | null; tokens?: number; recall?: "auto" | "always" | "off" | null; user_id?: string }): Promise<RecallBlock>;
  /** Mark a recalled excerpt as not helpful. */
  addUnhelpful(session_id: string, message_id: number, hits: number[], options?: { space?: string | null; user_id?: string }): Promise<Unhelpful>;
  /** List the excerpts that a person marked as not helpful, newest first. */
  listUnhelpful(options?: { space?: string | null; session_id?: string | null; message_id?: number | null; user_id?: string }): AsyncGenerator<Unhelpful>;
  /** Take a mark back: the excerpt counts as before. */
  deleteUnhelpful(mark_id: number, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Store an item, in the place of one with its name. */
  putItem(namespace: string[], key: string, value: any, options?: { space?: string | null; version?: number | null; ttl?: number | null; refresh_on_read?: boolean; index?: string[] | null; user_id?: string }): Promise<Item>;
  /** Read an item. */
  getItem(namespace: string[], key: string, options?: { space?: string | null; refresh?: boolean; user_id?: string }): Promise<Item>;
  /** Erase an item, for good. */
  deleteItem(namespace: string[], key: string, options?: { space?: string | null; version?: number | null; user_id?: string }): Promise<Receipt>;
  /** Search items, newest first or by a query. */
  searchItems(namespace_prefix?: string[], options?: { space?: string | null; filter?: Record<string, any>; query?: string | null; fields?: string[]; limit?: number; offset?: number; refresh?: boolean; user_id?: string }): Promise<Found>;
  /** List the namespaces that have items, in alphabetical order. */
  listNamespaces(options?: { space?: string | null; prefix?: string[]; suffix?: string[]; max_depth?: number | null; limit?: number; offset?: number; user_id?: string }): Promise<NamespaceList>;
  /** Run up to 1,000 operations in one transaction. */
  batch(operations: (Record<string, any>)[], options?: { space?: string | null; user_id?: string }): Promise<Results>;
  /** Read the profile as it is, or as it was at `as_of`. */
  getProfileOfSpace(space: string, options?: { as_of?: string | null }): Promise<Profile>;
  /** Edit the profile by a JSON Patch (RFC 6902). */
  editProfileOfSpace(space: string, patch: Operation[], options?: { expected_version?: number | null }): Promise<Profile>;
  /** Read the profile as it is, or as it was at `as_of`. */
  profile(options?: { as_of?: string | null; user_id?: string }): Promise<Profile>;
  /** Edit the profile by a JSON Patch (RFC 6902). */
  editProfile(patch: Operation[], options?: { expected_version?: number | null; user_id?: string }): Promise<Profile>;
  /** List all versions of the profile, newest first. */
  listProfileVersionsOfSpace(space: string): AsyncGenerator<Profile>;
  /** List all versions of the profile, newest first. */
  listProfileVersions(options?: { user_id?: string }): AsyncGenerator<Profile>;
  /** Bring an earlier version of the profile back, as a new version. */
  rollBackProfileOfSpace(space: string, version: number): Promise<Profile>;
  /** Bring an earlier version of the profile back, as a new version. */
  rollBackProfile(version: number, options?: { user_id?: string }): Promise<Profile>;
  /** Have the mini model read the new facts about the space now, also after an update has failed. */
  refreshProfileOfSpace(space: string): Promise<Profile>;
  /** Have the mini model read the new facts about the person now, also after an update has failed. */
  refreshProfile(options?: { user_id?: string }): Promise<Profile>;
  /** Read the JSON Schema of the tenant's profiles. */
  getProfileSchema(options?: { kind?: "user" | "space" }): Promise<SchemaOfProfiles>;
  /** Set the JSON Schema (2020-12) of the tenant's profiles. */
  setProfileSchema(schema: any): Promise<SchemaOfProfiles>;
  /** Read the overview as it is, and whether it is being written. */
  getOverviewOfSpace(space: string): Promise<Overview>;
  /** Set the sentences of the overview. */
  editOverviewOfSpace(space: string, sentences: WrittenSentence[], options?: { expected_version?: number | null }): Promise<Overview>;
  /** Read the overview as it is, and whether it is being written. */
  getOverview(options?: { user_id?: string }): Promise<Overview>;
  /** Set the sentences of the overview. */
  editOverview(sentences: WrittenSentence[], options?: { expected_version?: number | null; user_id?: string }): Promise<Overview>;
  /** List all versions of the overview, newest first. */
  listOverviewVersionsOfSpace(space: string): AsyncGenerator<OverviewVersion>;
  /** List all versions of the overview, newest first. */
  listOverviewVersions(options?: { user_id?: string }): AsyncGenerator<OverviewVersion>;
  /** Bring an earlier version of the overview back, as a new version. */
  rollBackOverviewOfSpace(space: string, version: number): Promise<Overview>;
  /** Bring an earlier version of the overview back, as a new version. */
  rollBackOverview(version: number, options?: { user_id?: string }): Promise<Overview>;
  /** Have the mini model write the overview now, also after an update has failed. */
  refreshOverviewOfSpace(space: string): Promise<Overview>;
  /** Have the mini model write the overview now, also after an update has failed. */
  refreshOverview(options?: { user_id?: string }): Promise<Overview>;
  /** Add an example, or make one of an exchange. */
  addExample(options?: { space?: string | null; input?: string; output?: string; messages?: ExampleMessage[]; session_id?: string; message_id?: number; tags?: string[]; rating?: number; user_id?: string }): Promise<Example>;
  /** List the examples of a user or, without a `user_id`, those for all of the tenant, newest first. */
  listExamples(options?: { space?: string | null; session_id?: string | null; user_id?: string }): AsyncGenerator<Example>;
  /** Erase an example, for good. */
  deleteExample(example_id: number, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Read how much is stored of a space. */
  getSpace(space: string): Promise<User>;
  /** Turn the memory of a space off, or on again. */
  changeSpace(space: string, options?: { remember?: boolean }): Promise<User>;
  /** Erase everything of a space, for good. */
  eraseSpace(space: string): Promise<Receipt>;
  /** Read how much is stored of a person. */
  getUser(options?: { user_id?: string }): Promise<User>;
  /** Turn the memory of a person off, or on again. */
  changeUser(options?: { remember?: boolean; user_id?: string }): Promise<User>;
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
  listSpaces(): AsyncGenerator<Space>;
  /** Read which sessions of the tenant stay. */
  getRetention(): Promise<RetentionPolicy>;
  /** Set which sessions of the tenant stay. */
  putRetention(options?: { days?: number | null; sessions?: number | null; archive?: boolean }): Promise<RetentionPolicy>;
  /** List the archives of sessions that were taken out of memory, newest first. */
  listArchives(options?: { space?: string | null; session_id?: string | null; user_id?: string }): AsyncGenerator<Archive>;
  /** Read an archive, as a document that can be imported. */
  getArchive(archive_id: number, options?: { space?: string | null; user_id?: string }): Promise<ExportDocument>;
  /** Erase an archive, for good. */
  eraseArchive(archive_id: number, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Bring an archived session back into memory, and delete the archive. */
  restoreArchive(archive_id: number, options?: { space?: string | null; user_id?: string }): Promise<Imported>;
  /** Read the person's rules or, without a user_id, the tenant's, which hold for each person. */
  getRules(options?: { space?: string | null; user_id?: string }): Promise<RulesVersion>;
  /** Store new rules in the place of the ones before. */
  putRules(options?: { categories?: CategoryRule[]; topics?: string[]; words?: string[]; review?: boolean; space?: string | null; expected_version?: number | null; close?: boolean | null; user_id?: string }): Promise<RulesVersion>;
  /** Erase the rules with all of their versions, for good; what they closed stays closed. */
  deleteRules(options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** List what rules would close of what is stored; nothing is stored. */
  previewRules(options?: { categories?: CategoryRule[]; topics?: string[]; words?: string[]; review?: boolean; space?: string | null; user_id?: string }): Promise<RulesEffect>;
  /** List all versions of the rules, newest first. */
  listRulesVersions(options?: { space?: string | null; user_id?: string }): Promise<RulesVersionList>;
  /** Bring an earlier version back, as a new version; it closes nothing. */
  rollBackRules(version: number, options?: { space?: string | null; user_id?: string }): Promise<RulesVersion>;
  /** List the instructions that the person's prompts show, and those that have a proposal. */
  listInstructions(options?: { space?: string | null; user_id?: string }): Promise<InstructionList>;
  /** Read an instruction, and the proposal that waits for it. */
  getInstruction(instruction: string, options?: { space?: string | null; user_id?: string }): Promise<Instruction>;
  /** Store a new version of an instruction. */
  putInstruction(instruction: string, text: string, options?: { space?: string | null; expected_version?: number | null; user_id?: string }): Promise<Instruction>;
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
  putConversationType(conversation_type: string, options?: { cues?: string[]; prompt?: string; recall?: "auto" | "always" | "tools" | "off" | null; recall_tokens?: number | null; fact_tokens?: number | null; example_tokens?: number | null; emphasis?: ("topic" | "requirements" | "constraints" | "excluded" | "data" | "open_questions" | "discussed")[]; space?: string | null; user_id?: string }): Promise<ConversationType>;
  /** Erase a type of one's own; one that is built in changes nothing from then on. */
  deleteConversationType(conversation_type: string, options?: { space?: string | null; user_id?: string }): Promise<Receipt>;
  /** Say what a person thinks of a reply, in the place of what they thought before. */
  giveFeedback(session_id: string, message_id: number, options?: { space?: string | null; thumbs?: "up" | "down" | "none" | null; text?: string; instruction?: string; user_id?: string }): Promise<FeedbackGiven>;
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
  putModelServer(options?: { base_url?: string; api_key?: string | null; main?: string; mini?: string }): Promise<ModelServer>;
  /** Forget the stored model server and its key. */
  deleteModelServer(): Promise<ModelServer>;
  /** Ask the models of a model server one short question. */
  testModelServer(options?: { base_url?: string; api_key?: string | null; main?: string; mini?: string }): Promise<ModelTried>;
  /** List the models of a model server, to choose from before it is stored. */
  listModelsOfServer(options?: { base_url?: string; api_key?: string | null; main?: string; mini?: string }): Promise<ModelsListed>;
  /** List jobs that wait, run or failed. */
  jobs(options?: { space?: string | null; state?: "pending" | "running" | "failed" | null; session_id?: string | null; user_id?: string }): AsyncGenerator<Job>;
  /** Retry a job now. */
  retryJob(job_id: number, options?: { space?: string | null; user_id?: string }): Promise<Job>;
  /** Cancel a job of the kind `consolidation`, also while it runs: it changes nothing then. */
  cancelJob(job_id: number, options?: { space?: string | null; user_id?: string }): Promise<undefined>;
  /** Follow the events of a person or, with a key of the whole tenant and no `user_id`, of all. */
  events(options?: { space?: string | null; after?: string | null; types?: string; words?: boolean; seconds?: number; user_id?: string }): EventStream;
  /** List webhooks, each with its last deliveries. */
  listWebhooks(options?: { space?: string | null; user_id?: string }): Promise<WebhookList>;
  /** Make a webhook for the events of a person or, without a `user_id`, of the whole tenant. */
  createWebhook(url: string, options?: { space?: string | null; types?: ("message.stored" | "summary.updated" | "fact.created" | "fact.corrected" | "fact.forgotten" | "profile.updated" | "overview.updated" | "document.stored" | "document.erased" | "job.failed" | "person.erased" | "space.erased")[]; words?: boolean; user_id?: string }): Promise<WebhookMade>;
  /** Change, disable or enable a webhook. */
  changeWebhook(webhook_id: number, options?: { url?: string; types?: ("message.stored" | "summary.updated" | "fact.created" | "fact.corrected" | "fact.forgotten" | "profile.updated" | "overview.updated" | "document.stored" | "document.erased" | "job.failed" | "person.erased" | "space.erased")[]; words?: boolean; enabled?: boolean; user_id?: string }): Promise<Webhook>;
  /** Delete a webhook, with what waits for it. */
  deleteWebhook(webhook_id: number, options?: { space?: string | null; user_id?: string }): Promise<undefined>;
  /** Give a webhook a new secret. */
  rotateWebhook(webhook_id: number, options?: { overlap_hours?: number; user_id?: string }): Promise<WebhookMade>;
  /** Post an event of the type `webhook.test`, and see how it went. */
  testWebhook(webhook_id: number, options?: { space?: string | null; user_id?: string }): Promise<Delivery>;
  /** Chat as with OpenAI, and be remembered. */
  complete(messages: (Record<string, any>)[], options?: { model?: string | null; safety_identifier?: any; metadata?: any; n?: any; user_id?: string; idempotency_key?: string; [more: string]: any }): Promise<Completion>;
  /** List the models: `recap`, which is the main model, and those of the model server. */
  listServedModels(): Promise<ModelList>;
  /** Read one model of the model server, or the built-in one. */
  getServedModel(model: string): Promise<Model>;
  /** Embed texts with the model server. */
  embed(options?: { [more: string]: any }): Promise<any>;
  /** Complete a text with the model server, as programs do to complete code. */
  completeText(options?: { [more: string]: any }): Promise<any>;
  /** Classify texts with the model server. */
  moderate(options?: { [more: string]: any }): Promise<any>;
  /** Chat as with Anthropic, and be remembered. */
  createMessage(messages: (Record<string, any>)[], max_tokens: number, options?: { model?: string | null; system?: any; tools?: (Record<string, any>)[] | null; tool_choice?: Record<string, any> | null; metadata?: Record<string, any> | null; output_config?: Record<string, any> | null; stop_sequences?: any; temperature?: any; top_p?: any; thread?: Record<string, any> | null; thinking?: Record<string, any> | null; top_k?: any; cache_control?: any; context_management?: any; service_tier?: any; user_id?: string; idempotency_key?: string; [more: string]: any }): Promise<AnthropicMessage>;
  /** Estimate the tokens of a request. */
  countTokens(messages: (Record<string, any>)[], options?: { model?: string | null; system?: any; tools?: (Record<string, any>)[] | null; tool_choice?: Record<string, any> | null; [more: string]: any }): Promise<TokenCount>;
  /** Ask for a response as from OpenAI, and be remembered. */
  createResponse(input: any, options?: { model?: string | null; instructions?: string | null; previous_response_id?: string | null; store?: boolean | null; tools?: (Record<string, any>)[] | null; tool_choice?: any; text?: Record<string, any> | null; reasoning?: Record<string, any> | null; max_output_tokens?: number | null; metadata?: Record<string, any> | null; safety_identifier?: any; parallel_tool_calls?: any; prompt_cache_key?: any; temperature?: any; top_p?: any; include?: any; max_tool_calls?: any; prompt_cache_retention?: any; service_tier?: any; stream_options?: any; top_logprobs?: any; truncation?: any; client_metadata?: any; conversation?: any; background?: boolean | null; user_id?: string; idempotency_key?: string; [more: string]: any }): Promise<ResponseObject>;
  /** Read a response that was stored. */
  getResponse(response_id: string, options?: { starting_after?: number }): Promise<ResponseObject>;
  /** Erase a response and what it answers, for good, as single messages are erased. */
  deleteResponse(response_id: string): Promise<DeletedObject>;
  /** List the items that a response answers: those after the response before, oldest first. */
  listInputItems(response_id: string): Promise<ConversationItems>;
  /** Estimate the tokens of a request. */
  countInputTokens(input: any, options?: { model?: string | null; instructions?: string | null; previous_response_id?: string | null; store?: boolean | null; tools?: (Record<string, any>)[] | null; tool_choice?: any; text?: Record<string, any> | null; reasoning?: Record<string, any> | null; max_output_tokens?: number | null; metadata?: Record<string, any> | null; safety_identifier?: any; parallel_tool_calls?: any; prompt_cache_key?: any; temperature?: any; top_p?: any; include?: any; max_tool_calls?: any; prompt_cache_retention?: any; service_tier?: any; stream_options?: any; top_logprobs?: any; truncation?: any; client_metadata?: any; conversation?: any; background?: boolean | null; user_id?: string; [more: string]: any }): Promise<InputTokens>;
  /** Begin a conversation. */
  createConversation(options?: { items?: (Record<string, any>)[] | null; metadata?: Record<string, string> | null; safety_identifier?: any; user_id?: string; [more: string]: any }): Promise<ConversationObject>;
  /** Read a conversation: any session by its id. */
  getConversation(conversation_id: string): Promise<ConversationObject>;
  /** Change what is kept with a conversation. */
  updateConversation(conversation_id: string, metadata: Record<string, string> | null, options?: { user_id?: string; [more: string]: any }): Promise<ConversationObject>;
  /** Erase a conversation with its items, as DELETE /api/sessions/{session_id} does. */
  deleteConversation(conversation_id: string): Promise<DeletedObject>;
  /** List the items of a conversation, newest first. */
  listItemsOfConversation(conversation_id: string, options?: { after?: string | null; limit?: number; order?: "asc" | "desc" }): Promise<ConversationItems>;
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
