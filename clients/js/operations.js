// A method for each call.
// Generated from the OpenAPI document by clients/generate.py (`make clients`): change that one instead.

export class Operations {
  chat(message, options) {
    return this._send({ method: "POST", path: "/api/chat", body: { message, ...options }, person: "user_id", turn: true });
  }
  stream(message, options) {
    return this._open({ method: "POST", path: "/api/chat", body: { message, ...options }, person: "user_id", turn: true });
  }
  sessions(options) {
    return this._each({ method: "GET", path: "/api/sessions", query: { ...options }, person: "query" });
  }
  createSession(options) {
    return this._send({ method: "POST", path: "/api/sessions", body: { ...options }, person: "user_id" });
  }
  session(session_id, options) {
    return this._send({ method: "GET", path: "/api/sessions/{session_id}", ids: { session_id }, query: { ...options }, person: "query" });
  }
  changeSession(session_id, options) {
    return this._send({ method: "PATCH", path: "/api/sessions/{session_id}", ids: { session_id }, body: { ...options }, person: "query", repeatable: true });
  }
  eraseSession(session_id, options) {
    return this._send({ method: "DELETE", path: "/api/sessions/{session_id}", ids: { session_id }, query: { ...options }, person: "query" });
  }
  messages(session_id, options) {
    return this._each({ method: "GET", path: "/api/sessions/{session_id}/messages", ids: { session_id }, query: { ...options }, person: "query" });
  }
  addMessages(session_id, messages, options) {
    return this._send({ method: "POST", path: "/api/sessions/{session_id}/messages", ids: { session_id }, body: { messages, ...options }, person: "user_id", repeatable: messages.every((message) => message.external_id !== undefined) });
  }
  eraseMessage(session_id, message_id, options) {
    return this._send({ method: "DELETE", path: "/api/sessions/{session_id}/messages/{message_id}", ids: { session_id, message_id }, query: { ...options }, person: "query" });
  }
  hideMessages(session_id, options) {
    return this._send({ method: "POST", path: "/api/sessions/{session_id}/messages/hide", ids: { session_id }, body: { ...options }, person: "user_id" });
  }
  showMessages(session_id, options) {
    return this._send({ method: "POST", path: "/api/sessions/{session_id}/messages/show", ids: { session_id }, body: { ...options }, person: "user_id" });
  }
  listMessageVersions(session_id, options) {
    return this._send({ method: "GET", path: "/api/sessions/{session_id}/messages/versions", ids: { session_id }, query: { ...options }, person: "query" });
  }
  restoreMessage(session_id, message_id, options) {
    return this._send({ method: "POST", path: "/api/sessions/{session_id}/messages/{message_id}/restore", ids: { session_id, message_id }, query: { ...options }, person: "query" });
  }
  listRelatedSessions(session_id, options) {
    return this._send({ method: "GET", path: "/api/sessions/{session_id}/related", ids: { session_id }, query: { ...options }, person: "query" });
  }
  stopReply(session_id, options) {
    return this._send({ method: "POST", path: "/api/sessions/{session_id}/stop", ids: { session_id }, query: { ...options }, person: "query" });
  }
  listTurns(session_id, options) {
    return this._each({ method: "GET", path: "/api/sessions/{session_id}/turns", ids: { session_id }, query: { ...options }, person: "query" });
  }
  getTurn(session_id, message_id, options) {
    return this._send({ method: "GET", path: "/api/sessions/{session_id}/turns/{message_id}", ids: { session_id, message_id }, query: { ...options }, person: "query" });
  }
  summary(session_id, options) {
    return this._send({ method: "GET", path: "/api/sessions/{session_id}/summary", ids: { session_id }, query: { ...options }, person: "query" });
  }
  editSummary(session_id, sections, options) {
    return this._send({ method: "PUT", path: "/api/sessions/{session_id}/summary", ids: { session_id }, body: { sections, ...options }, person: "user_id" });
  }
  listSummaryVersions(session_id, options) {
    return this._each({ method: "GET", path: "/api/sessions/{session_id}/summary/versions", ids: { session_id }, query: { ...options }, person: "query" });
  }
  rollBackSummary(session_id, version, options) {
    return this._send({ method: "POST", path: "/api/sessions/{session_id}/summary/rollback", ids: { session_id }, body: { version, ...options }, person: "user_id" });
  }
  refreshSummary(session_id, options) {
    return this._send({ method: "POST", path: "/api/sessions/{session_id}/summary/refresh", ids: { session_id }, query: { ...options }, person: "query" });
  }
  previewSummary(session_id, options) {
    return this._send({ method: "POST", path: "/api/sessions/{session_id}/summary/preview", ids: { session_id }, body: { ...options }, person: "user_id" });
  }
  facts(options) {
    return this._each({ method: "GET", path: "/api/facts", query: { ...options }, person: "query" });
  }
  addFact(text, options) {
    return this._send({ method: "POST", path: "/api/facts", body: { text, ...options }, person: "user_id" });
  }
  getFact(fact_id, options) {
    return this._send({ method: "GET", path: "/api/facts/{fact_id}", ids: { fact_id }, query: { ...options }, person: "query" });
  }
  changeFact(fact_id, options) {
    return this._send({ method: "PATCH", path: "/api/facts/{fact_id}", ids: { fact_id }, body: { ...options }, person: "query", repeatable: true });
  }
  forgetFact(fact_id, options) {
    return this._send({ method: "DELETE", path: "/api/facts/{fact_id}", ids: { fact_id }, query: { ...options }, person: "query" });
  }
  forgetFacts(ids, options) {
    return this._send({ method: "POST", path: "/api/facts/forget", body: { ids, ...options }, person: "user_id", repeatable: true });
  }
  reviewFacts(options) {
    return this._send({ method: "POST", path: "/api/facts/review", body: { ...options }, person: "user_id" });
  }
  factHistory(fact_id, options) {
    return this._send({ method: "GET", path: "/api/facts/{fact_id}/history", ids: { fact_id }, query: { ...options }, person: "query" });
  }
  listConsolidationsOfSpace(space) {
    return this._send({ method: "GET", path: "/api/spaces/{space}/consolidation", ids: { space } });
  }
  consolidateOfSpace(space) {
    return this._send({ method: "POST", path: "/api/spaces/{space}/consolidation", ids: { space } });
  }
  listConsolidations(options) {
    return this._send({ method: "GET", path: "/api/users/{user_id}/consolidation", query: { ...options }, person: "path" });
  }
  consolidate(options) {
    return this._send({ method: "POST", path: "/api/users/{user_id}/consolidation", query: { ...options }, person: "path" });
  }
  undoConsolidationOfSpace(space) {
    return this._send({ method: "POST", path: "/api/spaces/{space}/consolidation/undo", ids: { space } });
  }
  undoConsolidation(options) {
    return this._send({ method: "POST", path: "/api/users/{user_id}/consolidation/undo", query: { ...options }, person: "path" });
  }
  addDocument(text, options) {
    return this._send({ method: "POST", path: "/api/documents", body: { text, ...options }, person: "user_id", repeatable: true });
  }
  uploadDocument(file, options) {
    return this._send({ method: "POST", path: "/api/documents", body: { file, ...options }, person: "user_id", form: true, repeatable: true });
  }
  listDocuments(options) {
    return this._each({ method: "GET", path: "/api/documents", query: { ...options }, person: "query" });
  }
  getDocument(document_id, options) {
    return this._send({ method: "GET", path: "/api/documents/{document_id}", ids: { document_id }, query: { ...options }, person: "query" });
  }
  deleteDocument(document_id, options) {
    return this._send({ method: "DELETE", path: "/api/documents/{document_id}", ids: { document_id }, query: { ...options }, person: "query" });
  }
  listPassages(document_id, options) {
    return this._each({ method: "GET", path: "/api/documents/{document_id}/passages", ids: { document_id }, query: { ...options }, person: "query" });
  }
  readGraph(options) {
    return this._each({ method: "GET", path: "/api/graph", query: { ...options }, person: "query" });
  }
  search(q, options) {
    return this._send({ method: "GET", path: "/api/search", query: { q, ...options }, person: "query" });
  }
  recall(message, options) {
    return this._send({ method: "POST", path: "/api/recall", body: { message, ...options }, person: "user_id", repeatable: true });
  }
  addUnhelpful(session_id, message_id, hits, options) {
    return this._send({ method: "POST", path: "/api/recall/unhelpful", body: { session_id, message_id, hits, ...options }, person: "user_id" });
  }
  listUnhelpful(options) {
    return this._each({ method: "GET", path: "/api/recall/unhelpful", query: { ...options }, person: "query" });
  }
  deleteUnhelpful(mark_id, options) {
    return this._send({ method: "DELETE", path: "/api/recall/unhelpful/{mark_id}", ids: { mark_id }, query: { ...options }, person: "query" });
  }
  putItem(namespace, key, value, options) {
    return this._send({ method: "PUT", path: "/api/store/items", body: { namespace, key, value, ...options }, person: "user_id", repeatable: true });
  }
  getItem(namespace, key, options) {
    return this._send({ method: "GET", path: "/api/store/items", query: { namespace, key, ...options }, person: "query" });
  }
  deleteItem(namespace, key, options) {
    return this._send({ method: "DELETE", path: "/api/store/items", query: { namespace, key, ...options }, person: "query" });
  }
  searchItems(namespace_prefix, options) {
    return this._send({ method: "POST", path: "/api/store/search", body: { namespace_prefix, ...options }, person: "user_id", repeatable: true });
  }
  listNamespaces(options) {
    return this._send({ method: "GET", path: "/api/store/namespaces", query: { ...options }, person: "query" });
  }
  batch(operations, options) {
    return this._send({ method: "POST", path: "/api/store/batch", body: { operations, ...options }, person: "user_id" });
  }
  getProfileOfSpace(space, options) {
    return this._send({ method: "GET", path: "/api/spaces/{space}/profile", ids: { space }, query: { ...options } });
  }
  editProfileOfSpace(space, patch, options) {
    return this._send({ method: "PATCH", path: "/api/spaces/{space}/profile", ids: { space }, body: { patch, ...options } });
  }
  profile(options) {
    return this._send({ method: "GET", path: "/api/users/{user_id}/profile", query: { ...options }, person: "path" });
  }
  editProfile(patch, options) {
    return this._send({ method: "PATCH", path: "/api/users/{user_id}/profile", body: { patch, ...options }, person: "path" });
  }
  listProfileVersionsOfSpace(space) {
    return this._each({ method: "GET", path: "/api/spaces/{space}/profile/versions", ids: { space } });
  }
  listProfileVersions(options) {
    return this._each({ method: "GET", path: "/api/users/{user_id}/profile/versions", query: { ...options }, person: "path" });
  }
  rollBackProfileOfSpace(space, version) {
    return this._send({ method: "POST", path: "/api/spaces/{space}/profile/rollback", ids: { space }, body: { version } });
  }
  rollBackProfile(version, options) {
    return this._send({ method: "POST", path: "/api/users/{user_id}/profile/rollback", body: { version, ...options }, person: "path" });
  }
  refreshProfileOfSpace(space) {
    return this._send({ method: "POST", path: "/api/spaces/{space}/profile/refresh", ids: { space } });
  }
  refreshProfile(options) {
    return this._send({ method: "POST", path: "/api/users/{user_id}/profile/refresh", query: { ...options }, person: "path" });
  }
  getProfileSchema(options) {
    return this._send({ method: "GET", path: "/api/profile/schema", query: { ...options } });
  }
  setProfileSchema(schema) {
    return this._send({ method: "PUT", path: "/api/profile/schema", body: { schema } });
  }
  getOverviewOfSpace(space) {
    return this._send({ method: "GET", path: "/api/spaces/{space}/overview", ids: { space } });
  }
  editOverviewOfSpace(space, sentences, options) {
    return this._send({ method: "PUT", path: "/api/spaces/{space}/overview", ids: { space }, body: { sentences, ...options } });
  }
  getOverview(options) {
    return this._send({ method: "GET", path: "/api/users/{user_id}/overview", query: { ...options }, person: "path" });
  }
  editOverview(sentences, options) {
    return this._send({ method: "PUT", path: "/api/users/{user_id}/overview", body: { sentences, ...options }, person: "path" });
  }
  listOverviewVersionsOfSpace(space) {
    return this._each({ method: "GET", path: "/api/spaces/{space}/overview/versions", ids: { space } });
  }
  listOverviewVersions(options) {
    return this._each({ method: "GET", path: "/api/users/{user_id}/overview/versions", query: { ...options }, person: "path" });
  }
  rollBackOverviewOfSpace(space, version) {
    return this._send({ method: "POST", path: "/api/spaces/{space}/overview/rollback", ids: { space }, body: { version } });
  }
  rollBackOverview(version, options) {
    return this._send({ method: "POST", path: "/api/users/{user_id}/overview/rollback", body: { version, ...options }, person: "path" });
  }
  refreshOverviewOfSpace(space) {
    return this._send({ method: "POST", path: "/api/spaces/{space}/overview/refresh", ids: { space } });
  }
  refreshOverview(options) {
    return this._send({ method: "POST", path: "/api/users/{user_id}/overview/refresh", query: { ...options }, person: "path" });
  }
  addExample(options) {
    return this._send({ method: "POST", path: "/api/examples", body: { ...options }, person: "user_id" });
  }
  listExamples(options) {
    return this._each({ method: "GET", path: "/api/examples", query: { ...options }, person: "query" });
  }
  deleteExample(example_id, options) {
    return this._send({ method: "DELETE", path: "/api/examples/{example_id}", ids: { example_id }, query: { ...options }, person: "query" });
  }
  listUsers() {
    return this._each({ method: "GET", path: "/api/users" });
  }
  getSpace(space) {
    return this._send({ method: "GET", path: "/api/spaces/{space}", ids: { space } });
  }
  changeSpace(space, options) {
    return this._send({ method: "PATCH", path: "/api/spaces/{space}", ids: { space }, body: { ...options } });
  }
  eraseSpace(space) {
    return this._send({ method: "DELETE", path: "/api/spaces/{space}", ids: { space } });
  }
  getUser(options) {
    return this._send({ method: "GET", path: "/api/users/{user_id}", query: { ...options }, person: "path" });
  }
  changeUser(options) {
    return this._send({ method: "PATCH", path: "/api/users/{user_id}", body: { ...options }, person: "path" });
  }
  eraseUser(options) {
    return this._send({ method: "DELETE", path: "/api/users/{user_id}", query: { ...options }, person: "path" });
  }
  exportSpace(space, options) {
    return this._send({ method: "GET", path: "/api/spaces/{space}/export", ids: { space }, query: { ...options } });
  }
  export(options) {
    return this._send({ method: "GET", path: "/api/users/{user_id}/export", query: { ...options }, person: "path" });
  }
  importChats(document, options) {
    return this._send({ method: "POST", path: "/api/import", document, query: { ...options }, person: "query" });
  }
  getBacklogOfSpace(space) {
    return this._send({ method: "GET", path: "/api/spaces/{space}/summaries", ids: { space } });
  }
  summariseBacklogOfSpace(space) {
    return this._send({ method: "POST", path: "/api/spaces/{space}/summaries", ids: { space } });
  }
  cancelBacklogOfSpace(space) {
    return this._send({ method: "DELETE", path: "/api/spaces/{space}/summaries", ids: { space } });
  }
  getBacklog(options) {
    return this._send({ method: "GET", path: "/api/users/{user_id}/summaries", query: { ...options }, person: "path" });
  }
  summariseBacklog(options) {
    return this._send({ method: "POST", path: "/api/users/{user_id}/summaries", query: { ...options }, person: "path" });
  }
  cancelBacklog(options) {
    return this._send({ method: "DELETE", path: "/api/users/{user_id}/summaries", query: { ...options }, person: "path" });
  }
  whoami() {
    return this._send({ method: "GET", path: "/api/me" });
  }
  listSpaces() {
    return this._each({ method: "GET", path: "/api/spaces" });
  }
  getRetention() {
    return this._send({ method: "GET", path: "/api/retention" });
  }
  putRetention(options) {
    return this._send({ method: "PUT", path: "/api/retention", body: { ...options } });
  }
  listArchives(options) {
    return this._each({ method: "GET", path: "/api/archives", query: { ...options }, person: "query" });
  }
  getArchive(archive_id, options) {
    return this._send({ method: "GET", path: "/api/archives/{archive_id}", ids: { archive_id }, query: { ...options }, person: "query" });
  }
  eraseArchive(archive_id, options) {
    return this._send({ method: "DELETE", path: "/api/archives/{archive_id}", ids: { archive_id }, query: { ...options }, person: "query" });
  }
  restoreArchive(archive_id, options) {
    return this._send({ method: "POST", path: "/api/archives/{archive_id}/restore", ids: { archive_id }, query: { ...options }, person: "query" });
  }
  getRules(options) {
    return this._send({ method: "GET", path: "/api/rules", query: { ...options }, person: "query" });
  }
  putRules(options) {
    return this._send({ method: "PUT", path: "/api/rules", body: { ...options }, person: "user_id" });
  }
  deleteRules(options) {
    return this._send({ method: "DELETE", path: "/api/rules", query: { ...options }, person: "query" });
  }
  previewRules(options) {
    return this._send({ method: "POST", path: "/api/rules/preview", body: { ...options }, person: "user_id" });
  }
  listRulesVersions(options) {
    return this._send({ method: "GET", path: "/api/rules/versions", query: { ...options }, person: "query" });
  }
  rollBackRules(version, options) {
    return this._send({ method: "POST", path: "/api/rules/rollback", body: { version, ...options }, person: "user_id" });
  }
  listInstructions(options) {
    return this._send({ method: "GET", path: "/api/instructions", query: { ...options }, person: "query" });
  }
  getInstruction(instruction, options) {
    return this._send({ method: "GET", path: "/api/instructions/{instruction}", ids: { instruction }, query: { ...options }, person: "query" });
  }
  putInstruction(instruction, text, options) {
    return this._send({ method: "PUT", path: "/api/instructions/{instruction}", ids: { instruction }, body: { text, ...options }, person: "user_id" });
  }
  deleteInstruction(instruction, options) {
    return this._send({ method: "DELETE", path: "/api/instructions/{instruction}", ids: { instruction }, query: { ...options }, person: "query" });
  }
  listInstructionVersions(instruction, options) {
    return this._send({ method: "GET", path: "/api/instructions/{instruction}/versions", ids: { instruction }, query: { ...options }, person: "query" });
  }
  rollBackInstruction(instruction, version, options) {
    return this._send({ method: "POST", path: "/api/instructions/{instruction}/rollback", ids: { instruction }, body: { version, ...options }, person: "user_id" });
  }
  decideProposal(instruction, accept, options) {
    return this._send({ method: "POST", path: "/api/instructions/{instruction}/proposal", ids: { instruction }, body: { accept, ...options }, person: "user_id" });
  }
  listConversationTypes(options) {
    return this._send({ method: "GET", path: "/api/conversation-types", query: { ...options }, person: "query" });
  }
  getConversationType(conversation_type, options) {
    return this._send({ method: "GET", path: "/api/conversation-types/{conversation_type}", ids: { conversation_type }, query: { ...options }, person: "query" });
  }
  putConversationType(conversation_type, options) {
    return this._send({ method: "PUT", path: "/api/conversation-types/{conversation_type}", ids: { conversation_type }, body: { ...options }, person: "user_id" });
  }
  deleteConversationType(conversation_type, options) {
    return this._send({ method: "DELETE", path: "/api/conversation-types/{conversation_type}", ids: { conversation_type }, query: { ...options }, person: "query" });
  }
  giveFeedback(session_id, message_id, options) {
    return this._send({ method: "POST", path: "/api/feedback", body: { session_id, message_id, ...options }, person: "user_id", repeatable: true });
  }
  listPrompts() {
    return this._send({ method: "GET", path: "/api/prompts" });
  }
  getPrompt(name) {
    return this._send({ method: "GET", path: "/api/prompts/{name}", ids: { name } });
  }
  putPrompt(name, text) {
    return this._send({ method: "PUT", path: "/api/prompts/{name}", ids: { name }, body: { text } });
  }
  deletePrompt(name) {
    return this._send({ method: "DELETE", path: "/api/prompts/{name}", ids: { name } });
  }
  listModels() {
    return this._send({ method: "GET", path: "/api/models" });
  }
  getModelServer() {
    return this._send({ method: "GET", path: "/api/model-server" });
  }
  putModelServer(options) {
    return this._send({ method: "PUT", path: "/api/model-server", body: { ...options } });
  }
  deleteModelServer() {
    return this._send({ method: "DELETE", path: "/api/model-server" });
  }
  testModelServer(options) {
    return this._send({ method: "POST", path: "/api/model-server/test", body: { ...options } });
  }
  listModelsOfServer(options) {
    return this._send({ method: "POST", path: "/api/model-server/models", body: { ...options } });
  }
  jobs(options) {
    return this._each({ method: "GET", path: "/api/jobs", query: { ...options }, person: "query" });
  }
  retryJob(job_id, options) {
    return this._send({ method: "POST", path: "/api/jobs/{job_id}/retry", ids: { job_id }, query: { ...options }, person: "query" });
  }
  cancelJob(job_id, options) {
    return this._send({ method: "DELETE", path: "/api/jobs/{job_id}", ids: { job_id }, query: { ...options }, person: "query" });
  }
  events(options) {
    return this._listen({ method: "GET", path: "/api/events", query: { ...options }, person: "query" });
  }
  listWebhooks(options) {
    return this._send({ method: "GET", path: "/api/webhooks", query: { ...options }, person: "query" });
  }
  createWebhook(url, options) {
    return this._send({ method: "POST", path: "/api/webhooks", body: { url, ...options }, person: "user_id" });
  }
  changeWebhook(webhook_id, options) {
    return this._send({ method: "PATCH", path: "/api/webhooks/{webhook_id}", ids: { webhook_id }, body: { ...options }, person: "query" });
  }
  deleteWebhook(webhook_id, options) {
    return this._send({ method: "DELETE", path: "/api/webhooks/{webhook_id}", ids: { webhook_id }, query: { ...options }, person: "query" });
  }
  rotateWebhook(webhook_id, options) {
    return this._send({ method: "POST", path: "/api/webhooks/{webhook_id}/rotate", ids: { webhook_id }, body: { ...options }, person: "query" });
  }
  testWebhook(webhook_id, options) {
    return this._send({ method: "POST", path: "/api/webhooks/{webhook_id}/test", ids: { webhook_id }, query: { ...options }, person: "query" });
  }
  complete(messages, options) {
    return this._send({ method: "POST", path: "/v1/chat/completions", body: { messages, ...options }, person: "user_id", turn: true });
  }
  listServedModels() {
    return this._send({ method: "GET", path: "/v1/models" });
  }
  getServedModel(model) {
    return this._send({ method: "GET", path: "/v1/models/{model}", ids: { model } });
  }
  embed(options) {
    return this._send({ method: "POST", path: "/v1/embeddings", body: { ...options } });
  }
  completeText(options) {
    return this._send({ method: "POST", path: "/v1/completions", body: { ...options } });
  }
  moderate(options) {
    return this._send({ method: "POST", path: "/v1/moderations", body: { ...options } });
  }
  createMessage(messages, max_tokens, options) {
    return this._send({ method: "POST", path: "/v1/messages", body: { messages, max_tokens, ...options }, person: "metadata", turn: true });
  }
  countTokens(messages, options) {
    return this._send({ method: "POST", path: "/v1/messages/count_tokens", body: { messages, ...options } });
  }
  createResponse(input, options) {
    return this._send({ method: "POST", path: "/v1/responses", body: { input, ...options }, person: "user", turn: true });
  }
  getResponse(response_id, options) {
    return this._send({ method: "GET", path: "/v1/responses/{response_id}", ids: { response_id }, query: { ...options } });
  }
  deleteResponse(response_id) {
    return this._send({ method: "DELETE", path: "/v1/responses/{response_id}", ids: { response_id } });
  }
  listInputItems(response_id) {
    return this._send({ method: "GET", path: "/v1/responses/{response_id}/input_items", ids: { response_id } });
  }
  countInputTokens(input, options) {
    return this._send({ method: "POST", path: "/v1/responses/input_tokens", body: { input, ...options }, person: "user" });
  }
  createConversation(options) {
    return this._send({ method: "POST", path: "/v1/conversations", body: { ...options }, person: "user" });
  }
  getConversation(conversation_id) {
    return this._send({ method: "GET", path: "/v1/conversations/{conversation_id}", ids: { conversation_id } });
  }
  updateConversation(conversation_id, metadata, options) {
    return this._send({ method: "POST", path: "/v1/conversations/{conversation_id}", ids: { conversation_id }, body: { metadata, ...options }, person: "metadata" });
  }
  deleteConversation(conversation_id) {
    return this._send({ method: "DELETE", path: "/v1/conversations/{conversation_id}", ids: { conversation_id } });
  }
  listItemsOfConversation(conversation_id, options) {
    return this._send({ method: "GET", path: "/v1/conversations/{conversation_id}/items", ids: { conversation_id }, query: { ...options } });
  }
  createItems(conversation_id, options) {
    return this._send({ method: "POST", path: "/v1/conversations/{conversation_id}/items", ids: { conversation_id }, body: { ...options } });
  }
  getItemOfConversation(conversation_id, item_id) {
    return this._send({ method: "GET", path: "/v1/conversations/{conversation_id}/items/{item_id}", ids: { conversation_id, item_id } });
  }
  deleteItemOfConversation(conversation_id, item_id) {
    return this._send({ method: "DELETE", path: "/v1/conversations/{conversation_id}/items/{item_id}", ids: { conversation_id, item_id } });
  }
  mcp(jsonrpc, options) {
    return this._send({ method: "POST", path: "/mcp", body: { jsonrpc, ...options }, person: "query" });
  }
  live() {
    return this._send({ method: "GET", path: "/health/live" });
  }
  ready() {
    return this._send({ method: "GET", path: "/health/ready" });
  }
}
