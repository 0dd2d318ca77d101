"""The JSON objects that calls take and answer.

Generated from the OpenAPI document by clients/generate.py (`make clients`): change that one instead.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class AnthropicMessage(TypedDict):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[dict[str, Any]]
    stop_reason: str
    stop_sequence: str | None
    usage: dict[str, Any]
    memory: NotRequired[dict[str, Any]]


class Appended(TypedDict):
    session: Session
    message_ids: list[int]
    created: int


class Archive(TypedDict):
    id: int
    user_id: str | None
    space: str | None
    session_id: str
    title: str
    message_count: int
    first_message_at: str | None
    last_message_at: str | None
    created_at: str


class ArchivePage(TypedDict):
    items: list[Archive]
    next_cursor: str | None


class Backlog(TypedDict):
    sessions: int
    tokens: int
    waiting: int
    failed: int


class Call(TypedDict):
    method: str
    path: str
    body: NotRequired[dict[str, Any]]


class CalledFunction(TypedDict):
    name: str
    arguments: NotRequired[str]


class CategoryRule(TypedDict):
    name: str
    keep: NotRequired[bool]
    days: NotRequired[int | None]
    about: NotRequired[str]


class ChatReply(TypedDict):
    id: str
    object: str
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: ChatUsage
    session_id: str | None
    user_message_id: int | None
    message_id: int | None
    reply: str
    memory: Memory
    notice: NotRequired[str]


class ChatUsage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    estimated: bool
    full_history_tokens: int
    saved_tokens: int


class ClosedFact(TypedDict):
    id: int
    text: str
    category: str
    session_id: str | None
    valid_from: str


class Completion(TypedDict):
    id: str
    object: str
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: dict[str, Any]


class ConsolidationRun(TypedDict):
    at: str
    merged: int
    contradicted: int
    expired: int


class ConsolidationRunList(TypedDict):
    items: list[ConsolidationRun]


class ConversationItem(TypedDict):
    id: str
    type: str


class ConversationItems(TypedDict):
    object: Literal["list"]
    data: list[ConversationItem]
    first_id: str | None
    last_id: str | None
    has_more: bool


class ConversationObject(TypedDict):
    id: str
    object: Literal["conversation"]
    created_at: int
    metadata: dict[str, Any]


class ConversationType(TypedDict):
    cues: list[str]
    prompt: str
    recall: Literal["auto", "always", "tools", "off"] | None
    recall_tokens: int | None
    fact_tokens: int | None
    example_tokens: int | None
    emphasis: list[Literal["topic", "requirements", "constraints", "excluded", "data", "open_questions", "discussed"]]
    name: str
    built_in: bool
    of_tenant: bool


class ConversationTypeList(TypedDict):
    items: list[ConversationType]


class Correction(TypedDict):
    id: int
    text: str
    category: str
    session_id: str | None
    source_message_id: int | None
    valid_from: str


class DeletedObject(TypedDict):
    id: str
    object: str
    deleted: Literal[True]


class Delivery(TypedDict):
    event_id: str
    type: str
    at: str
    status: int | None
    error: str | None
    seconds: float


class Document(TypedDict):
    id: str
    user_id: str | None
    space: str | None
    title: str
    uri: str | None
    external_id: str | None
    media_type: str
    size: int
    pages: int | None
    passages: int
    tokens: int
    created_at: str
    updated_at: str
    state: str | None


class DocumentPage(TypedDict):
    items: list[Document]
    next_cursor: str | None


class DocumentPlace(TypedDict):
    id: str
    title: str
    uri: str | None
    page: NotRequired[int]


class Edge(TypedDict):
    subject: Entity
    relation: str
    object: Entity
    distance: int
    fact_id: int
    quote: str
    session_id: str | None
    source_message_id: int | None
    valid_from: str
    valid_to: str | None


class EdgePage(TypedDict):
    items: list[Edge]
    next_cursor: str | None


class Entity(TypedDict):
    name: str
    kind: str


class Event(TypedDict):
    id: str
    type: str
    timestamp: str
    data: EventData


class EventData(TypedDict):
    user_id: str | None
    space: str
    session_id: str | None
    message_id: int
    role: str
    position: int
    created_at: str
    content: str | None
    name: str | None
    version: int
    through: int
    author: str
    sections: dict[str, Any]
    fact_id: int
    action: str
    category: str
    importance: int
    pinned: bool
    scope: str
    superseded_by: int | None
    text: str
    profile: dict[str, Any]
    overview: dict[str, Any]
    document_id: str
    job_id: int
    kind: str
    webhook_id: int


class Example(TypedDict):
    id: int
    input: str
    output: str
    messages: list[ExampleMessage]
    tags: list[str]
    rating: int
    created_at: str


class ExampleMessage(TypedDict):
    role: Literal["user", "assistant", "tool"]
    content: NotRequired[str | None]
    tool_calls: NotRequired[list[ToolCall]]
    tool_call_id: NotRequired[str]


class ExamplePage(TypedDict):
    items: list[Example]
    next_cursor: str | None


class Excerpt(TypedDict):
    session_id: str | None
    document: NotRequired[DocumentPlace]
    title: str
    messages: list[ExcerptMessage]
    hits: list[int]
    score: float
    why: dict[str, float]
    summary: Gist | None


class ExcerptMessage(TypedDict):
    id: int
    position: int
    role: str
    name: str | None
    content: str
    created_at: str
    page: NotRequired[int | None]


class Excluded(TypedDict):
    option: str
    reason: NotRequired[str]


class ExportDocument(TypedDict):
    format: Literal["recap-export"]
    version: Literal[1]
    exported_at: str
    user_id: str | None
    space: str | None
    remember: bool
    sessions: list[ExportedSession]
    facts: list[ExportedFact]
    items: list[ExportedItem]
    documents: list[ExportedDocument]
    archives: list[Archive]


class ExportedCost(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    calls: int
    facts: dict[str, int]


class ExportedDocument(TypedDict):
    id: str | None
    title: str
    uri: str | None
    external_id: str | None
    media_type: str
    digest: str
    size: int
    pages: int | None
    created_at: str
    updated_at: str
    passages: list[ExportedPassage]


class ExportedFact(TypedDict):
    id: int
    text: str
    category: str
    importance: int
    scope: Literal["session", "user"]
    session_id: str | None
    source_position: int | None
    quote: str
    pinned: bool
    recalled_count: int
    valid_from: str
    valid_to: str | None
    expires_at: str | None
    superseded_by: int | None
    merged: bool
    waiting: bool
    created_at: str
    revisions: list[ExportedRevision]
    links: list[ExportedLink]


class ExportedItem(TypedDict):
    namespace: list[str]
    key: str
    value: Any
    version: int
    ttl: float | None
    refresh_on_read: bool
    index: list[str] | None
    expires_at: str | None
    created_at: str
    updated_at: str
    sources: list[ExportedSource]
    versions: list[ExportedVersion]


class ExportedLink(TypedDict):
    subject: str
    relation: str
    object: str
    subject_kind: Literal["person", "place", "organisation", "thing"]
    object_kind: Literal["person", "place", "organisation", "thing"]


class ExportedMessage(TypedDict):
    role: Literal["user", "assistant", "system", "tool"]
    content: str
    name: str | None
    created_at: str
    external_id: str | None
    extra: dict[str, Any] | None
    erased_at: str | None
    hidden_at: str | None
    refused: Refused | None


class ExportedPassage(TypedDict):
    text: str
    page: int | None


class ExportedRevision(TypedDict):
    action: str
    author: str
    text: str
    category: str
    importance: int
    pinned: bool
    at: str


class ExportedSession(TypedDict):
    id: str
    title: str
    system_prompt: str | None
    pinned: bool
    archived: bool
    remember: bool
    type: str | None
    client_metadata: dict[str, str] | None
    created_at: str
    updated_at: str
    facts_through: int
    messages: list[ExportedMessage]
    summaries: list[ExportedSummary]
    turns: list[ExportedTurn]


class ExportedSource(TypedDict):
    session_id: str
    position: int


class ExportedSummary(TypedDict):
    version: int
    sections: Sections
    through: int
    tokens: int
    author: str
    model: str | None
    prompt: str | None
    usage: ExportedCost | None
    restores: int | None
    created_at: str


class ExportedTurn(TypedDict):
    user_position: int
    reply_position: int | None
    model: str | None
    finish_reason: str | None
    usage: ExportedUsage | None
    started_at: str
    finished_at: str | None


class ExportedUsage(TypedDict):
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    full_history_tokens: int


class ExportedVersion(TypedDict):
    version: int
    value: Any
    author: str
    created_at: str


class Fact(TypedDict):
    id: int
    text: str
    category: str
    importance: int
    scope: str
    session_id: str | None
    source_message_id: int | None
    quote: str
    pinned: bool
    recalled_count: int
    valid_from: str
    valid_to: str | None
    expires_at: str | None
    waiting: bool
    superseded_by: int | None
    created_at: str
    proof_count: int
    proofs: list[Proof]
    score: dict[str, float] | None


class FactPage(TypedDict):
    items: list[Fact]
    next_cursor: str | None


class FactRevision(TypedDict):
    fact_id: int
    action: str
    author: str
    text: str
    category: str
    importance: int
    pinned: bool
    at: str


class FactRevisionList(TypedDict):
    items: list[FactRevision]


class FeedbackGiven(TypedDict):
    id: int
    thumbs: str | None
    text: str
    instruction: str
    state: str
    created_at: str


class Found(TypedDict):
    items: list[Item]


class Gist(TypedDict):
    text: str
    updated_at: str


class Hidden(TypedDict):
    hidden: list[int]
    shown: list[int]


class Imported(TypedDict):
    format: str
    created: dict[str, int]
    known: dict[str, int]
    renamed: dict[str, Any]
    skipped: int
    skipped_items: list[str]
    unread_times: list[str]


class InputTokens(TypedDict):
    object: Literal["response.input_tokens"]
    input_tokens: int


class Instruction(TypedDict):
    name: str
    version: int
    text: str
    author: str | None
    created_at: str | None
    diff: str
    of_tenant: bool
    proposal: Proposal | None


class InstructionList(TypedDict):
    items: list[Instruction]


class InstructionVersion(TypedDict):
    name: str
    version: int
    text: str
    author: str | None
    created_at: str | None
    diff: str


class InstructionVersionList(TypedDict):
    items: list[InstructionVersion]


class Item(TypedDict):
    namespace: list[str]
    key: str
    value: Any
    version: int
    ttl: float | None
    refresh_on_read: bool
    expires_at: str | None
    created_at: str
    updated_at: str
    index: list[str] | None
    score: float | None


class Job(TypedDict):
    id: int
    kind: str
    state: str
    session_id: str | None
    attempts: int
    run_at: str
    error: str | None
    position: int | None
    age: int
    created_at: str
    updated_at: str


class JobPage(TypedDict):
    items: list[Job]
    next_cursor: str | None


class ListedMessage(TypedDict):
    id: int
    session_id: str
    position: int
    role: str
    name: str | None
    content: str
    created_at: str
    external_id: str | None
    tokens: int
    extra: dict[str, Any] | None
    hidden_at: str | None
    refused: Refused | None
    thumbs: str | None


class ListedMessagePage(TypedDict):
    items: list[ListedMessage]
    next_cursor: str | None
    previous_cursor: str | None


class ListedUser(TypedDict):
    user_id: str
    created_at: str


class ListedUserPage(TypedDict):
    items: list[ListedUser]
    next_cursor: str | None


class Live(TypedDict):
    status: str


class Me(TypedDict):
    tenant: str
    user_id: str | None
    scopes: list[str]
    spaces: dict[str, str] | None
    may: dict[str, bool]


class Memory(TypedDict):
    summary: dict[str, Any]
    profile: ShownProfile
    overview: ShownOverview
    instructions: list[ShownText]
    type: str | None
    facts: list[ShownFact]
    excerpts: list[Excerpt]
    examples: list[Example]
    others: list[OtherMemory]
    recall: dict[str, Any]
    written: list[WrittenFact]
    tail: dict[str, int]


class Message(TypedDict):
    id: int
    session_id: str
    position: int
    role: str
    name: str | None
    content: str
    created_at: str
    external_id: str | None
    tokens: int
    extra: dict[str, Any] | None
    hidden_at: str | None
    refused: Refused | None


class MessageToAppend(TypedDict):
    role: Literal["user", "assistant", "system", "tool"]
    content: str
    name: NotRequired[str | None]
    created_at: NotRequired[str | None]
    external_id: NotRequired[str | None]
    extra: NotRequired[dict[str, Any] | None]


class Model(TypedDict):
    pass


class ModelCheck(TypedDict):
    task: str
    model: str
    address: str
    works: bool
    problem: str | None
    seconds: float
    reply: str
    window: int | None
    learned: list[str]
    warnings: list[str]


class ModelList(TypedDict):
    data: list[Model]


class ModelNames(TypedDict):
    main: str
    items: list[str]


class ModelServer(TypedDict):
    source: str
    base_url: str
    main: str
    mini: str
    key_end: str | None
    refusal: str | None
    problem: str | None


class ModelTried(TypedDict):
    model: str
    reply: str
    seconds: float
    checks: list[ModelCheck]


class ModelsListed(TypedDict):
    items: list[str]


class NamespaceList(TypedDict):
    namespaces: list[list[str]]


Operation = TypedDict(
    "Operation",
    {
        "op": "Literal['add', 'remove', 'replace', 'move', 'copy', 'test']",
        "path": "str",
        "value": "NotRequired[Any]",
        "from": "NotRequired[str]",
    },
)


class OtherMemory(TypedDict):
    space: str | None
    facts: list[ShownFact]
    excerpts: list[Excerpt]


class Overview(TypedDict):
    version: int
    sentences: list[Sentence]
    author: str | None
    created_at: str | None
    is_shown: bool
    is_updating: bool
    error: str | None


class OverviewSource(TypedDict):
    session_id: str
    version: int


class OverviewVersion(TypedDict):
    version: int
    sentences: list[Sentence]
    author: str | None
    created_at: str | None


class OverviewVersionPage(TypedDict):
    items: list[OverviewVersion]
    next_cursor: str | None


class Passage(TypedDict):
    message_id: int
    position: int
    page: int | None
    text: str


class PassagePage(TypedDict):
    items: list[Passage]
    next_cursor: str | None


class Profile(TypedDict):
    version: int
    document: dict[str, Any]
    sources: Any
    author: str | None
    created_at: str | None


class ProfilePage(TypedDict):
    items: list[Profile]
    next_cursor: str | None


class Prompt(TypedDict):
    name: str
    version: int
    source: str
    text: str
    created_at: str | None


class PromptDeleted(TypedDict):
    name: str
    versions: int


class PromptList(TypedDict):
    items: list[Prompt]


class Proof(TypedDict):
    id: int
    text: str
    quote: str
    session_id: str | None
    source_message_id: int | None
    valid_from: str


class Proposal(TypedDict):
    text: str
    reason: str
    quote: str
    diff: str
    created_at: str


class Ready(TypedDict):
    status: str
    database: str
    data_dir: str
    model: dict[str, Any]
    notice: NotRequired[str]
    recall: str
    summary_prompt: str
    jobs: dict[str, int]
    jobs_late: NotRequired[str]
    embeddings: NotRequired[str]
    webhooks: NotRequired[str]
    rate_limits: NotRequired[str]


class RecallBlock(TypedDict):
    block: str
    tokens: int
    memory: Memory


class Receipt(TypedDict):
    erased: dict[str, int]
    pending: list[str]
    erased_at: str
    user_id: NotRequired[str]
    space: NotRequired[str]
    session_id: NotRequired[str]
    message_id: NotRequired[int]
    fact_id: NotRequired[int]
    document_id: NotRequired[str]
    example_id: NotRequired[int]
    mark_id: NotRequired[int]
    archive_id: NotRequired[int]
    name: NotRequired[str]
    namespace: NotRequired[list[str]]
    key: NotRequired[str]
    forgotten: NotRequired[int]


class Refused(TypedDict):
    code: str
    reason: str
    at: str


class RelatedSession(TypedDict):
    session_id: str
    title: str
    updated_at: str
    score: float
    why: dict[str, Any]


class RelatedSessionList(TypedDict):
    items: list[RelatedSession]


class ResponseObject(TypedDict):
    id: str
    object: Literal["response"]
    created_at: int
    status: str
    model: str
    output: list[dict[str, Any]]
    usage: dict[str, Any]


class Result(TypedDict):
    item: NotRequired[Item | None]
    erased: NotRequired[dict[str, int]]
    items: NotRequired[list[Item]]
    namespaces: NotRequired[list[list[str]]]


class Results(TypedDict):
    results: list[Result]


class RetentionPolicy(TypedDict):
    days: NotRequired[int | None]
    sessions: NotRequired[int | None]
    archive: NotRequired[bool]


class ReviewedFacts(TypedDict):
    accepted: int
    refused: int


class RpcMessage(TypedDict):
    jsonrpc: str
    id: NotRequired[Any]
    method: NotRequired[str]
    params: NotRequired[dict[str, Any]]
    result: NotRequired[dict[str, Any]]
    error: NotRequired[dict[str, Any]]


class RuleSet(TypedDict):
    categories: list[CategoryRule]
    topics: list[str]
    words: list[str]
    review: bool


class RulesEffect(TypedDict):
    facts: list[ClosedFact]
    fact_count: int
    summaries: int
    profiles: int


class RulesVersion(TypedDict):
    version: int
    rules: RuleSet
    in_force: RuleSet
    author: str | None
    created_at: str | None


class RulesVersionList(TypedDict):
    items: list[RulesVersion]


class Said(TypedDict):
    role: Literal["user", "assistant"]
    content: str


class SchemaOfProfiles(TypedDict):
    schema: Any


class SearchResult(TypedDict):
    kind: str
    document: DocumentPlace | None
    text: str | None
    fact_id: int | None
    message_id: int | None
    external_id: str | None
    session_id: str | None
    title: str | None
    position: int | None
    role: str | None
    name: str | None
    content: str | None
    created_at: str | None
    score: float
    why: dict[str, float]
    highlights: list[str]
    window: list[Message]
    corrections: list[Correction]


class SearchResults(TypedDict):
    results: list[SearchResult]
    took_ms: float


class Sections(TypedDict):
    topic: NotRequired[str]
    requirements: NotRequired[list[str]]
    constraints: NotRequired[list[str]]
    excluded: NotRequired[list[Excluded]]
    data: NotRequired[list[str]]
    open_questions: NotRequired[list[str]]
    discussed: NotRequired[list[str]]


class Sentence(TypedDict):
    text: str
    facts: list[int]
    summaries: Any
    author: str


class Session(TypedDict):
    id: str
    user_id: str | None
    space: str | None
    title: str
    system_prompt: str | None
    pinned: bool
    archived: bool
    remember: bool
    type: str | None
    message_count: int
    tokens: int
    summary_version: int
    created_at: str
    updated_at: str
    imported_at: str | None
    busy: bool


class SessionPage(TypedDict):
    items: list[Session]
    next_cursor: str | None


class ShownFact(TypedDict):
    id: int
    text: str
    category: str
    pinned: bool
    session_id: str | None
    source_message_id: int | None
    valid_from: str
    score: dict[str, float] | None


class ShownOverview(TypedDict):
    version: int
    sentences: list[Sentence]


class ShownProfile(TypedDict):
    version: int
    values: Any


class ShownText(TypedDict):
    kind: Literal["instruction", "type"]
    name: str
    version: int
    text: str
    of_tenant: bool


class Space(TypedDict):
    name: str
    right: Literal["read", "write"]
    created_at: str | None


class SpacePage(TypedDict):
    items: list[Space]
    next_cursor: str | None


class Stopping(TypedDict):
    stopping: bool


class Summary(TypedDict):
    session_id: str
    state: str
    error: str | None
    job_id: int | None
    head_version: int
    message_count: int
    latest: SummaryVersion | None


class SummaryPreview(TypedDict):
    sections: Sections
    tokens: int
    through: int
    model: str | None
    prompt: str | None
    usage: dict[str, Any] | None
    since: int
    current_version: int


class SummaryVersion(TypedDict):
    sections: Sections
    tokens: int
    through: int
    model: str | None
    prompt: str | None
    usage: dict[str, Any] | None
    version: int
    author: str
    restores: int | None
    replaced: bool
    created_at: str


class SummaryVersionPage(TypedDict):
    items: list[SummaryVersion]
    next_cursor: str | None


class TokenCount(TypedDict):
    input_tokens: int


class ToolCall(TypedDict):
    id: NotRequired[str]
    type: NotRequired[Literal["function"]]
    function: CalledFunction


class Turn(TypedDict):
    user_message_id: int
    message_id: int | None
    state: str
    so_far: str | None
    model: str | None
    finish_reason: str | None
    usage: ChatUsage | None
    started_at: str
    finished_at: str | None


class TurnPage(TypedDict):
    items: list[Turn]
    next_cursor: str | None


class TurnWithMemory(TypedDict):
    user_message_id: int
    message_id: int | None
    state: str
    so_far: str | None
    model: str | None
    finish_reason: str | None
    usage: ChatUsage | None
    started_at: str
    finished_at: str | None
    memory: Memory | None


class Unhelpful(TypedDict):
    id: int
    session_id: str
    message_id: int
    question: str
    excerpt_session_id: str | None
    messages: list[ExcerptMessage]
    created_at: str


class UnhelpfulPage(TypedDict):
    items: list[Unhelpful]
    next_cursor: str | None


class User(TypedDict):
    user_id: str | None
    space: str | None
    remember: bool
    sessions: int
    messages: int
    facts: int
    items: int
    documents: int
    archives: int
    summaries: int
    created_at: str
    first_message_at: str | None
    last_message_at: str | None
    tokens_today: int
    facts_forgotten: int
    last_forgotten_at: str | None


class Versions(TypedDict):
    message_id: int
    versions: list[int]


class VersionsList(TypedDict):
    items: list[Versions]


class Webhook(TypedDict):
    id: int
    user_id: str | None
    space: str | None
    url: str
    types: list[str]
    words: bool
    enabled: bool
    failing_since: str | None
    problem: str | None
    deliveries: list[Delivery]
    created_at: str
    updated_at: str


class WebhookList(TypedDict):
    items: list[Webhook]


class WebhookMade(TypedDict):
    id: int
    user_id: str | None
    space: str | None
    url: str
    types: list[str]
    words: bool
    enabled: bool
    failing_since: str | None
    problem: str | None
    deliveries: list[Delivery]
    created_at: str
    updated_at: str
    secret: str


class WrittenFact(TypedDict):
    action: Literal["remember", "correct", "forget"]
    fact_id: int
    text: str | None
    quote: str | None
    replaces: str | None
    undo: Call | None


class WrittenSentence(TypedDict):
    text: str
    facts: NotRequired[list[int]]
    summaries: NotRequired[list[OverviewSource]]
