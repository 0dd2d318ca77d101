"""What is remembered of an OpenAI client's conversation, whose it is, and what of it the next prompt carries."""

import json
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.protocols.client_requests import SESSION_HEADERS
from tests.http import chat, history, meanwhile, read_all, sessions, stored
from tests.knowledge import digest_of
from tests.model_server import Delay, Dictation, Status, Text, ToolCalls, at
from tests.openai import BODIES, Person, answered, assistant, complete, failed, post, result, sent, talk, user


@pytest.fixture
def client(model_app, model_server):
    numbers = iter(range(1, 10_000))
    model_server.main.default = lambda body: f"Answer {next(numbers)}."
    return model_app.test_client()


# -- whose it is


def test_the_session_is_named_by_headers_in_their_order_then_by_metadata(client):
    metadata = {"session_id": "meta"}
    for place, header in enumerate(SESSION_HEADERS):
        named = {name: f"by-{name}" for name in SESSION_HEADERS[place:]}
        answer = post(client, talk(f"Hello {place}"), None, named, metadata=metadata)
        assert answer.headers["X-Memory-Session-Id"] == f"by-{header}"
    call = {"id": "by-call", "type": "inboundPhoneCall"}
    answer = post(client, talk("Hello"), None, {"X-Session-Id": " "}, metadata=metadata, call=call)
    assert answer.headers["X-Memory-Session-Id"] == "meta"
    assert post(client, talk("Hello"), None, call=call).headers["X-Memory-Session-Id"] == "by-call"
    names = {*(f"by-{name}" for name in SESSION_HEADERS), "meta", "by-call"}
    assert {session["id"] for session in sessions(client)} == names


def test_the_person_is_named_by_headers_then_by_the_body(client):
    lite, both = {"x-litellm-end-user-id": "lite"}, {"safety_identifier": "safe", "user": "u"}
    named: list[tuple[Any, Any]] = [
        ({"X-OpenWebUI-User-Id": "web", **lite}, both),
        (lite, both),
        ({}, both),
        ({}, {"user": "u"}),
        ({}, {"user_id": "id", "metadata": {"user_id": "meta"}}),
        ({}, {"metadata": {"user_id": 7}}),
        ({"X-OpenWebUI-User-Id": "Zoë".encode().decode("latin-1")}, {}),
        ({}, {"customer": {"number": "+372 5555", "name": "Ada"}}),
        ({}, {"user": "user", "user_id": "user", "customer": "Ada"}),
        ({}, {}),
    ]
    for place, (headers, body) in enumerate(named):
        complete(client, talk("Hello"), f"s{place}", headers=headers, **body)
    found = {session["id"]: session["user_id"] for session in sessions(client)}
    expected = ["web", "lite", "safe", "u", "id", "7", "Zoë", "+372 5555", None, None]
    assert [found[f"s{place}"] for place in range(10)] == expected


def test_names_that_cannot_be_stored_stand_for_themselves_all_the_same(client):
    for odd in ("a b/c", "x" * 300):
        first = post(client, talk("Hello"), odd, user=odd).headers["X-Memory-Session-Id"]
        second = post(client, [*talk("Hello", "Answer"), user("Again")], odd, user=odd).headers["X-Memory-Session-Id"]
        assert first == second and first.startswith("id-") and len(first) < 64
    assert len(sessions(client)) == 2


# -- which session a request without an id carries on, and which it never does


RETRY = {"X-Stainless-Retry-Count": "1"}


@pytest.fixture
def later(monkeypatch):
    """Nothing is repeated at once: each request comes long after the one before."""
    monkeypatch.setattr("memory.transcripts.matching.AGAIN_SECONDS", -1.0)


def session_of(person: Person) -> str:
    return str(person.headers["X-Memory-Session-Id"])


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("note", [[], [user("Here is a summary of the conversation to date:\n\nThey have pets.")]])
def test_a_conversation_is_known_by_its_last_messages_where_its_beginning_is_left_out(client, note):
    ada, other = Person(client, None, user="ada"), Person(client, None, user="ada")
    for number in range(4):
        ada.says(f"Question {number}")
        other.says(f"Another question {number}")
    for text in ("Question 4", "Question 5", "Question 6"):
        ada.messages.append(user(text))
        ada.sends([*note, *ada.messages[-5:]])
    del ada.messages[-2:]
    ada.says("Question 7, edited", last=5)
    assert history(client, session_of(ada)) == ada.said
    foreign = [
        *talk("A chat", "with another program", "Question 7, edited", ada.messages[-1]["content"]),
        user("Hello"),
    ]
    complete(client, foreign, None, user="ada")
    complete(client, [*ada.messages[-4:], user("Hello")], None, user="bob")
    assert history(client, session_of(ada)) == ada.said and len(sessions(client)) == 4


@pytest.mark.usefixtures("later")
def test_conversations_that_begin_alike_are_kept_apart(client, model_server):
    model_server.main.default = lambda body: "Hello!"
    first, second = Person(client, None, user="ada"), Person(client, None, user="ada")
    first.says("Hi")
    first.says("Let us talk about tea.")
    second.says("Hi")
    second.says("Let us talk about ships.")
    first.says("Green tea.")
    bob = Person(client, None, user="bob")
    bob.says("Hi")
    people = (first, second, bob)
    assert len(set(map(session_of, people))) == 3
    for person in people:
        assert history(client, session_of(person)) == person.said
        assert history(client, session_of(person), branch=1) == []


@pytest.mark.usefixtures("later")
def test_strangers_who_begin_alike_never_meet(client, model_server):
    """Nobody is named: two people may say and hear the very same words first."""
    model_server.main.default = lambda body: "Hello! How can I help?"
    ann, bob = Person(client, None), Person(client, None)
    ann.says("Hi")
    bob.says("Hi")
    ann.says("My code is 7319.")
    bob.says("What is my code?")
    ann.says("Thanks.")
    assert not any("7319" in json.dumps(body) for body in sent(model_server) if "What is my code?" in json.dumps(body))
    assert [history(client, session_of(person)) for person in (ann, bob)] == [ann.said, bob.said]
    ann.edits(2, "My code is 9999.")  # where nobody is named, an edit is another conversation
    assert session_of(ann) != session_of(bob) and len(sessions(client)) == 3
    assert history(client, session_of(ann)) == ann.said


def test_a_first_question_repeated_at_once_or_by_a_retry_is_the_same(client, model_server, monkeypatch):
    ada = Person(client, None, user="ada")
    ada.says("Hi")
    ada.regenerates()
    assert history(client, session_of(ada)) == [("user", "Hi"), ("assistant", "Answer 2.")]
    monkeypatch.setattr("memory.transcripts.matching.AGAIN_SECONDS", -1.0)
    ada.messages.pop()
    assert ada.sends(ada.messages, RETRY) == "Answer 2."
    ada.says("What is new?")  # after the second answer
    (session,) = sessions(client)
    assert history(client, session["id"]) == ada.said and len(sent(model_server)) == 3


@pytest.mark.parametrize(("seconds", "sessions_made"), [(3600.0, 1), (-1.0, 2)])
def test_another_answer_to_a_first_question_takes_the_place_of_the_one_just_given(
    client, model_server, monkeypatch, seconds, sessions_made
):
    monkeypatch.setattr("memory.transcripts.matching.AGAIN_SECONDS", -1.0)
    monkeypatch.setattr("memory.transcripts.matching.REGENERATED_SECONDS", seconds)
    ada = Person(client, None, user="ada")
    ada.says("Tell me a tale.")
    ada.regenerates()
    ada.says("And then?")
    assert len(sessions(client)) == sessions_made and history(client, session_of(ada)) == ada.said


@pytest.mark.parametrize(("headers", "sessions_made"), [(RETRY, 1), ({}, 2)])
def test_while_a_first_question_is_being_answered_only_a_retry_waits_for_the_answer(
    client, model_server, headers, sessions_made
):
    """The same question without that may be another window of the same person."""
    go = threading.Event()
    model_server.main.queue(Delay(go, "Hello!"))

    def ask(**more: Any) -> str:
        return complete(client.application.test_client(), talk("Hi"), None, user="ada", **more)

    with meanwhile(ask):
        model_server.wait_for_requests(1)
        with meanwhile(lambda: ask(headers=headers)) as again:
            asked = model_server.wait_for(lambda: len(model_server.requests) > 1, 0.2 if headers else 20.0)
            assert asked is not bool(headers)
            go.set()
    assert again == ["Hello!" if headers else "Answer 1."]
    assert len(sessions(client)) == sessions_made


def test_what_is_being_answered_is_not_edited_by_another_request(client, model_server):
    ada = Person(client, None, user="ada")
    ada.says("Hi")
    go = threading.Event()
    model_server.main.queue(Delay(go, "Green."))
    with meanwhile(lambda: post(client.application.test_client(), [*ada.messages, *talk("Tea?")], None, user="ada")):
        model_server.wait_for_requests(2)
        other = post(client, [*ada.messages, *talk("Ships?")], None, user="ada")
        go.set()
    assert other.headers["X-Memory-Session-Id"] != session_of(ada)
    assert history(client, session_of(ada))[2:] == [("user", "Tea?"), ("assistant", "Green.")]


# -- what is stored


@pytest.mark.parametrize("path", BODIES)
def test_a_reply_that_the_client_began_is_stored_whole(client, model_server, path):
    """The client then sends it whole, and the conversation is known by it."""
    begun, more = "Once upon a", " time there was a cat."
    for number, reply in enumerate((more, begun + more)):  # which goes on, or repeats the beginning
        asked, person = [user("Tell me a tale."), assistant(begun)], {"X-OpenWebUI-User-Id": f"ada-{number}"}
        model_server.main.queue(reply, "Hm.")
        first = client.post(path, json=BODIES[path](asked), headers=person)
        assert first.status_code == 200 and sent(model_server)[-1]["messages"][-1] == assistant(begun)
        told = client.post(path, json=BODIES[path](asked), headers={**person, **RETRY})
        assert more in told.text and begun not in told.text and len(sent(model_server)) == 2 * number + 1
        whole = [user("Tell me a tale."), assistant(begun + more)]
        client.post(path, json=BODIES[path]([*whole, user("And then?")]), headers=person)
        (session,) = [one["id"] for one in sessions(client) if one["user_id"] == f"ada-{number}"]
        said = [("user", "Tell me a tale."), ("assistant", begun + more), ("user", "And then?"), ("assistant", "Hm.")]
        assert history(client, session) == said


def test_a_whole_message_of_the_assistants_is_begun_where_the_client_says_so(client, model_server):
    said = "He slept."
    for session, last, more, is_begun in (
        ("agents", assistant(said), {}, False),  # which this one answers
        ("named", assistant("He slept", name="narrator"), {}, False),
        ("prefix", assistant(said, prefix=True), {}, True),  # as DeepSeek and Mistral name it
        ("vllm", assistant(said), {"continue_final_message": True, "add_generation_prompt": False}, True),
    ):
        model_server.main.queue(" And woke.")
        assert complete(client, [user("Tell me a tale."), last], session, **more) == " And woke."
        assert sent(model_server)[-1]["messages"][-1] == last and more.items() <= sent(model_server)[-1].items()
        replies = [last["content"] + " And woke."] if is_begun else [last["content"], " And woke."]
        assert [text for role, text in history(client, session) if role == "assistant"] == replies


def test_a_reply_that_was_cut_short_is_one_reply_when_it_goes_on(client, model_server):
    """As a button "continue" asks for it."""
    model_server.main.queue("Once upon a", " time.")
    complete(client, talk("Tell me a tale."))
    assert complete(client, talk("Tell me a tale.", "Once upon a")) == " time."
    assert history(client, "s") == [("user", "Tell me a tale."), ("assistant", "Once upon a time.")]


def system(text: str) -> dict[str, str]:
    return {"role": "system", "content": text}


# What programs ask for themselves: the program, its instruction, and its message.
OWN_REQUESTS = """
VS Code | You are an expert in crafting pithy titles for chatbot conversations. | Please write a brief title for: Tea
Hugging Face | You are a titling assistant. Summarize the user's request into a short title. | Prompt: "Tell me of tea."
Vercel | - you will generate a short title based on the first message a user begins a conversation with | Tea
Continue | | Given the following... please reply with a short summary that is 4-12 words in length. A drink.
big-AGI | You are an AI conversation titles assistant who specializes in few-words chat titles. | Analyze the given: Tea
Cherry Studio | Summarize the conversation into a title in English within 10 words. | [{"role": "user"}]
Goose, earlier | Reply with only a description in four words or less | Here are the first few user messages: Tea
Open WebUI, its tools | Available Tools: [] Your task is to choose and return the correct tool(s). | Query: Tea
Open WebUI, many | | You have been provided with a set of responses from various models. Responses from models: No.
Open WebUI, earlier | | Create a concise, 3-5 word phrase as a header for the following query, strictly: tea
LibreChat | | Analyze this conversation and provide: 1. The detected language 2. A concise title User: Tea AI:
Cline | | Summarize this session for continuation. Be concise. ## Goal One sentence. Tell me of tea.
LangChain, to search | | Given the following conversation, rephrase the follow up question to be a standalone question.
LangChain | | <role> Context Extraction Assistant </role> Extract. <messages> Human: Tea AI: A drink. </messages>
Dify | | Human: Tea Assistant: A drink. Please help me predict the three most likely questions that human would ask.
CopilotKit | | Suggest what the user could say next. Provide clear, highly relevant suggestions by calling a tool.
Open WebUI | | ### Task: Generate a concise title. ### Chat History: <chat_history> USER: Tea. </chat_history>
in Chinese | 将给定的对话总结为一个10字以内的标题，使用用户语言 | user: 茶
LobeChat | You need to summarize the user's conversation into a title within 10 characters | user: Tell me of tea.
Page Assist | | You will rephrase follow-up questions into concise, standalone search queries. Conversation: Tea
chat-ui | Produce a very short, descriptive title that names the topic of the user's first message. | Message: "Tea"
Chatbox | | Based on the chat history, give this conversation a name. Keep it short. ``` Tea ```
LibreChat, its memory | Use the `set_memory` tool to save important information. | # Current Chat: Human: Green tea.
LibreChat, of calls | | You write the one-line header above a group of tool calls an AI agent just made. Header:
LibreChat, again | | Hold on again, update your checkpoint. Merge the new messages into your existing checkpoint.
LobeChat, abroad | You are a professional translator. Translate the input text to de-DE. - Preserve technical terms | T
Mattermost, an emoji | You are an emoji selector. You will receive a chat message. | I moved to Oslo with my dog Rex.
LobeChat, a group | | You are a conversation supervisor for a group chat with multiple AI agents. Green tea.
AnythingLLM, its memory | You are a memory reflector for a personalized AI assistant. | Candidates: 1. "User drinks tea"
AnythingLLM, a document | | You are extracting the key points from a long document that was split into sections. Tea.
Khoj, its tools | | You are Khoj, an extremely smart and helpful search assistant. User: I play the guitar Q: Tea Khoj:
Khoj, a page | As a professional analyst, your job is to extract all pertinent information from documents. | Tea.
mem0 | You are a Personal Information Organizer, specialized in accurately storing facts. | Input: user: Green tea.
mem0, what changes | | You are a smart memory manager which controls the memory of a system. Tea
Copilot in Obsidian | You maintain a user's long-term personal memory list as bullet points. | <new> Green </new>
Copilot, a note | | Summarize the following content, preserving: - Key concepts and main ideas Content: Tea Summary:
Cherry Studio, abroad | | You are a translation expert. Your only task is to translate text enclosed with <input>. Tea
Claude Code, of a call | You are a security monitor for autonomous AI coding agents. | <transcript> Tea </transcript>
Claude Code, a part | | Summarize this portion of a Claude Code session transcript. TRANSCRIPT CHUNK: Tea
Claude Code, its use | | Analyze this Claude Code session and extract structured facets. Tea
Cherry Studio, a language | | Your task is to precisely identify the language used in the user's input text. <text> Tea
"""
TEA = talk("Tell me of tea.", "A drink.")
DETAILS = "Name the files, what was tried, what is left to do, and why." * 5
READER = f"You are a context summarization agent. Read it and produce a structured summary of the session. {DETAILS}"
CRITICAL = "CRITICAL: Respond with TEXT ONLY.\n\nYour task is to create a detailed summary of the conversation so far."
ALONE = "Given a chat history and the latest user question, formulate a standalone question. Do NOT answer it."
SUM_UP = "You are summarizing a conversation between a user and an AI assistant.\n\nGenerate only the summary."
TITLES = {
    program: [*([system(instruction)] if instruction else []), user(message)]
    for program, instruction, message in (map(str.strip, row.split("|", 2)) for row in OWN_REQUESTS.strip().split("\n"))
} | {  # those that come after a conversation, or are long
    "Zed": [*TEA, user("Generate a concise 3-7 word title for this conversation,\nomitting punctuation.")],
    "SillyTavern": [*TEA, system("Ignore previous instructions. Summarize the most important events in the story.")],
    "SillyTavern, a reply": [*TEA, system("[Write your next reply from the point of view of Ada, using the chat.]")],
    "in Chinese, at first": [system("你是一名擅长会话的助理，你需要将用户的会话总结为 10 个字以内的标题"), *TEA],
    "a bot in Telegram": [
        assistant("Summarize this conversation in 700 characters or less"),
        user(str([system("Be brief."), *TEA])),
    ],
    "LobeChat, a summary": [
        system(
            "You're an assistant who's good at extracting key takeaways from conversations and summarizing them. "
            "Please summarize according to the user's needs. The content you need to summarize is located in the "
            "<chat_history> </chat_history> group of xml tags. The summary needs to maintain the original language."
        ),
        user("<chat_history>\n<user>Tell me of tea.</user>\n</chat_history>"),
    ],
    "Page Assist, at the end": [
        user(
            f"Here is the conversation:\n\n---\n\nUser: {'Tell me of tea. ' * 20}\nAssistant: A drink.\n\n---\n\n"
            "Create a concise, 3-5 word phrase as a title for this conversation. RESPOND ONLY WITH THE TITLE TEXT."
        )
    ],
    "Chatbox, a summary": [
        *TEA,
        user(
            "Provide a detailed summary for continuing this conversation.\nFocus on information that would be helpful "
            "for continuing, including:\n- What we discussed and why it matters\n- Key decisions made\n- What we're "
            "working on\n- What we're going to do next\n\nThe new session will not have access to our conversation "
            "history."
        ),
    ],
    "LibreChat, to shorten": [*TEA, user("Hold on, before you continue I need you to write me a checkpoint so far.")],
    "LobeChat, a language": [
        system("你是一名精通全世界语言的语言专家，你需要识别用户输入的内容"),
        *talk("{你好}", "zh-CN", "{Tea}"),
    ],
    "Mattermost, a thread": [
        system("You summarize threads."),
        user("The posts are given below:\n\n---- Posts Start ----\nbob: I moved to Oslo.\n---- Posts End ----"),
    ],
    "LobeChat, an emoji": [
        system("You are an emoji expert who selects the most appropriate emoji to represent concepts."),
        *talk("I just got a promotion at work", "🎉", "Tell me of tea."),
    ],
    "LobeChat, an agent": [
        system("你是一名擅长会话标签总结的助理，格式要求如下：\n输入: {文本作为JSON引用字符串} [locale]\n输出: {标签}"),
        *talk("输入: {你是一名文案大师} [zh-CN]", "起名,写作,创意", "输入: {Tea} [en-US]"),
    ],
    "AnythingLLM, its agents": [
        system("Provides conversations for observation."),
        *talk("Recent conversations to analyze:", "Observations submitted.", "Memories saved."),
    ],
    "Claude Code": [*TEA, user(CRITICAL)],
    "Claude Code, after words": [*TEA, user([{"type": "text", "text": text} for text in ("Go on.", CRITICAL)])],
    "Codex": [*TEA, user(f"You are performing a CONTEXT CHECKPOINT COMPACTION. Summarize for another LLM. {DETAILS}")],
    "Copilot": [
        *TEA,
        user(f"Create a detailed summary of the conversation so far, to be compacted. {DETAILS}"),
    ],
    "an agent": [*TEA, user(f"Provide a concise summary of our conversation so far, with the decisions. {DETAILS}")],
    "pi": [system(READER), user("<conversation>...</conversation>")],
    "OpenCode": [system(READER), *TEA, user("Here is the conversation so far:")],
    "OpenCode, a title": [system("You are a title generator."), user("Title this conversation:\n"), user('"Tea"')],
    "LangChain, a search": [system(ALONE), *TEA, user("Where is it?")],
    "Pipecat": [system(SUM_UP), user("Conversation history:\nUSER: Tell me of tea.\n\nASSISTANT: A drink.")],
    "LiveKit": [system(SUM_UP), user("To summarize:\n\n<user>\nTea\n</user>\n<assistant>\nA drink.\n</assistant>")],
    "big-AGI, a diagram": [
        *TEA,
        user("Analyze the conversation and call draw to assess relevance and generate PlantUML."),
    ],
    "big-AGI, several answers": [
        system("You are an expert AI text synthesizer, your task is to analyze the following inputs."),
        *TEA,
        user("Synthesize the perfect coherent response to my last message."),
    ],
}


def test_a_title_that_a_frontend_asks_for_is_answered_at_once_and_no_part_of_the_conversation(client, model_server):
    ada, go = Person(client, None, headers={"X-OpenWebUI-Chat-Id": "c"}, user="ada"), threading.Event()
    model_server.main.queue(Delay(go, "A drink."), "Of Tea")
    with meanwhile(lambda: ada.says("Tell me of tea.")):
        model_server.wait_for_requests(1)
        first = post(client.application.test_client(), TITLES["Open WebUI"], None, ada.more["headers"], user="ada")
        go.set()
    assert first.json["choices"][0]["message"]["content"] == "Of Tea"
    for program, title in TITLES.items():
        for headers in (ada.more["headers"], {}):  # in the conversation, and on its own
            answer = post(client, title, None, headers, user="ada")
            assert answer.status_code == 200 and answer.headers["X-Memory-Recalled"] == "0", program
            assert sent(model_server)[-1]["messages"] == title
    ada.says("Green tea.")
    assert history(client, "c") == ada.said and history(client, "c", branch=1) == []
    assert [session["id"] for session in sessions(client)] == ["c"]


def test_what_sounds_like_a_frontends_own_request_is_stored(client):
    heard = (
        ("Be brief.", "Give me a short title for my blog post about conversations with my grandmother."),
        ("Be brief.", "Write a short summary of the chat with my boss: she said no."),
        ("Be brief.", "My favourite book's title is Conversations with Friends."),
        ("Be brief.", "Please summarize our conversation so far."),
        ("Be brief.", 'What is wrong here? [{"role": "user", "content": "Hello"}]'),
        ("Be brief.", "Rewrite this function as a standalone script, after our conversation."),
        ("Be brief.", "What's a good title for a conversation book? Keep it short."),
        ("Be brief.", "In this chat I plan my wedding; a short title for the invitation would help."),
        ("Be brief.", "How can I change the title of a conversation in Slack? A brief answer, please."),
        ("Be brief.", "Please rewrite my follow-up into a standalone message to my landlord."),
        ("Be brief.", "这个对话框的标题太长，超过十个字怎么办？"),
        ("Be brief.", f"Here is my essay.\n\n{'The heron waits. ' * 40}\n\nFind a short title for it."),
        ("You write titles and short blurbs for her stories. Keep the conversation friendly.", "Hello"),
        ("You are a conversational assistant. Generate a concise title for an article when asked.", "Hello there"),
        ("You are a professional translator. Translate the input text to German.", "I live in Lyon."),
        ("Be brief.", "Analyze the conversation and call out what I said wrong to my boss."),
        ("You are an emoji bot. Help me to select one.", "I moved to Oslo with my dog Rex."),
        ("Be brief.", "Provides care and observation of patients: is this job like mine at the clinic?"),
        ("You are an emoji lover.", "The posts are given below: three of oak, one of ash. Which do I take?"),
        ("Be brief.", "Please create a detailed summary of our session so far."),
        ("Be brief.", "Suggest what I could say next to my landlord, a human who would not listen."),
        ("Be brief.", "Suggest a name for the user of my demo. I would ask Ada, but she is away."),
        ("Be brief.", f"Write a summary of the history of compact cars. {DETAILS}"),
        ("Be brief.", f"Make a page that summarizes a document and shows a short summary as it goes. {DETAILS}"[:290]),
        ("Be brief.", f"Write up the conversation with my boss, with a short summary for my wife. {DETAILS}"),
        ("You are an assistant.", "Conversation history:\nUSER: Tell me of tea.\n\nASSISTANT: A drink."),
        ("Be brief.", "<summary> is a tag of HTML. What is it for?"),
        ("Be brief.", "Your memory system retrieved the wrong cat: mine is called Miso."),
        ("Be brief.", "Summarize the following content: my cat is called Miso."),
        ("You are Khoj, a smart and curious personal assistant.", "My cat is called Miso."),
        ("You are a memory trainer. Provides exercises on observation.", "My cat is called Miso."),
        ("Be brief.", "Current chat: my neighbour says that his cat is called Miso."),
    )
    told = (  # what a summary says, or an instruction for the end of a chat, and more
        ("Be brief.", "Here is a summary of our conversation so far, from another chat: my cat is called Miso."),
        ("Be brief.", "Summary of my chat with your colleague so far: my cat Miso has to see the vet on Monday."),
        ("Be brief.", "I had a chat with my vet. A partial summary of what she told me: Miso is too fat."),
        ("Be brief.", "In our last session you gave me a summary of her symptoms so far. They got worse since then."),
        ("Be brief.", "Let me summarize our conversation so far: Miso eats too much, and she needs to play more."),
        ("You support customers in a chat. Hand off the conversation with a short summary of it.", "Hello, I am Ada."),
    )
    heard += tuple((f"{instruction} {DETAILS}", f"{words} {DETAILS}") for instruction, words in told)
    for number, (instruction, words) in enumerate(heard, start=1):
        complete(client, [system(instruction), user(words)], None, user="ada")
        assert len(sessions(client)) == number, words


ROLES = "user", "assistant", "tool"
CAT, NOTED = "My cat is called Miso.", "Noted: **Miso** is a cat.\n\n- She purrs."


@pytest.mark.parametrize(
    "quoting",
    [
        f"Recent conversations to analyze:\nUser: {CAT}\nAssistant: {NOTED}",
        f"# Chat\n\nHuman: {CAT}\nAI: Noted: **Miso** is a cat...\nHuman: I live in Lyon.",
        f'<message author="user">{CAT}</message>\n<message author="assistant">{NOTED}</message>',
        f"Input:\n{json.dumps([user(CAT), assistant(NOTED)])}",
        f'2-4 word lowercase label for this job.\nUser: "{CAT}"\nAgent: "{NOTED}"\n\nRespond with ONLY the label.',
        f"Name it.\n\n[User]: “{CAT}”\n[Agent]: “{NOTED}”",
    ],
)
def test_what_a_program_asks_of_the_last_exchange_of_a_person_is_not_stored(client, model_server, quoting):
    model_server.main.queue(NOTED)
    ada = Person(client, None, user="ada")
    ada.says(CAT)
    answer = post(client, [system("You look after what is known."), user(quoting)], None, user="ada")
    assert answer.headers["X-Memory-Recalled"] == "0" and sent(model_server)[-1]["messages"][-1] == user(quoting)
    assert len(sessions(client)) == 1
    complete(client, [user(quoting)], None, user="bob")
    assert len(sessions(client)) == 2, "bob has another exchange, so these are his words"
    ada.says("I live in Lyon.")
    assert history(client, session_of(ada)) == ada.said


@pytest.mark.parametrize(
    "words",
    [
        CAT,
        f"I said that {CAT} You said: {NOTED} Is she still three?",
        f'Yesterday I wrote: "{CAT}" and you answered: "{NOTED}" What else do you know?',
        f"My words:\n{CAT}\n\nYour answer:\n{NOTED}\n\nIs that still right?",
        NOTED,
        f"Please translate: {NOTED}",
        f"User stories: {CAT} What do you know of her?",
        f'The agent said: "{NOTED}" when I wrote: "{CAT}"',
    ],
)
def test_what_a_person_says_of_an_answer_is_theirs(client, model_server, words):
    model_server.main.queue(NOTED)
    Person(client, None, user="ada").says(CAT)
    complete(client, [system("Be kind."), user(words)], None, user="ada")
    assert len(sessions(client)) == 2


@pytest.mark.parametrize(
    ("role", "context"),
    [
        *((role, "# Contextual information to assist with the following user request.") for role in ROLES),
        ("user", "Use my personal notes and our past conversations to inform your response.\nUser's Notes:"),
        ("user", "Your memory system retrieved the following memories about me based on our previous conversations."),
    ],
)
def test_context_that_a_program_puts_before_the_words_is_not_stored(client, model_server, role, context):
    context += "\n\nCode: {}"
    ada = Person(client, None, user="ada")
    for number, words in enumerate((CAT, "I live in Lyon.", "I play chess.")):
        ada.messages.append(user(words))
        beside = {"role": role, "content": context.format(number)}
        more = {"tool_call_id": "injected"} if role == "tool" else {}
        ada.sends([*ada.messages[:-1], {**beside, **more}, ada.messages[-1]])
        assert f"Code: {number}" in str(sent(model_server)[-1]["messages"])
    assert [history(client, session["id"]) for session in sessions(client)] == [ada.said]


def test_what_a_frontend_found_in_files_goes_to_the_model_and_is_not_the_persons_words(client, model_server):
    task = "### Task:\nRespond to the user query using the provided context, with citations."
    found = f"{task}\n\n<context>\nOslo\n</context>"
    texts = (
        f"{found}\n\nWhose cat is it?",  # Open WebUI's, and its earlier form
        f"{found}\n\n<user_query>\nWhose cat is it?\n</user_query>",
        "Whose cat is it?\n\n<!-- SYSTEM CONTEXT (NOT PART OF USER QUERY) -->\n<files_info>Oslo</files_info>\n"
        "<!-- END SYSTEM CONTEXT -->",  # LobeChat's
        "Whose cat is it?\n\n<knowledge_base_qa_info>\nOslo\n<raw_query>Whose?</raw_query>\n</knowledge_base_qa_info>",
        'Attached document(s):\n```md# "cats.md"\nOslo\n```sh\nls\n```\n\n```\nWhose cat is it?',  # LibreChat's
        "<note_context>\nOslo\n</note_context>\n\n---\n\n[User query]:\n\nWhose cat is it?",  # Copilot's in Obsidian
        "Please answer the question based on the reference materials\n\n## Citation Rules:\n- Cite.\n\n"
        "## My question is:\n\nWhose cat is it?\n\n## Reference Materials:\n\nOslo\n\nPlease respond.",
    )
    for number, content in enumerate((*texts, [{"type": "text", "text": texts[0]}])):
        model_server.main.queue("Hers.")
        ada = {"headers": {"X-OpenWebUI-Chat-Id": f"c{number}"}, "user": "ada"}
        complete(client, [user(content)], None, **ada)
        assert "Oslo" in str(sent(model_server)[-1]["messages"])
        assert history(client, f"c{number}") == [("user", "Whose cat is it?"), ("assistant", "Hers.")]
        complete(client, [user("Whose cat is it?"), assistant("Hers."), user("Why?")], None, **ada)
        assert len(history(client, f"c{number}")) == 4 and history(client, f"c{number}", branch=1) == []


def test_a_frontends_temporary_chat_is_answered_and_not_stored(client, model_server):
    ada = Person(client, None, headers={"X-OpenWebUI-Chat-Id": "c"}, user="ada")
    ada.says("My locker code is 7319.")
    secret = [user("What is my locker code? Tell nobody that I asked.")]
    answer = post(client, secret, None, headers={"X-OpenWebUI-Chat-Id": "local:Xa9"}, user="ada")
    assert answer.status_code == 200 and answer.headers["X-Memory-Recalled"] == "0"
    assert sent(model_server)[-1]["messages"] == secret
    assert [session["id"] for session in sessions(client)] == ["c"] and history(client, "c") == ada.said


def test_instructions_alone_are_answered_and_not_stored(client, model_server):
    messages = [{"role": "system", "content": "Write a poem."}]
    complete(client, messages)
    assert sent(model_server)[0]["messages"] == messages and sessions(client) == []


KINDS = st.sampled_from(["all", "failed", "alone", "truncated", "edited", "regenerated", "repeated"])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_a_client_sends_the_stored_line_is_its_conversation(client, model_server, data):
    session = f"s{len(sent(model_server))}"
    ada = Person(client, session)
    for number in range(data.draw(st.integers(1, 6), "requests")):
        kind, text = data.draw(KINDS, "kind"), f"Question {number} of {session}."
        if kind == "failed":
            model_server.main.queue(Status(400))
            ada.messages.append(user(text))
            failed(post(client, ada.messages, session), 400)
            ada.sends(ada.messages)
        elif kind == "alone":
            ada.says(text, alone=True)
        elif kind == "truncated" and len(ada.messages) > 2:
            ada.says(text, last=data.draw(st.integers(2, len(ada.messages)), "last"))
        elif kind == "edited" and len(ada.messages) > 2:
            ada.edits(2 * data.draw(st.integers(1, len(ada.messages) // 2 - 1), "place"), text)
        elif kind == "regenerated" and len(ada.messages) > 2:
            ada.regenerates()
        elif kind == "repeated" and ada.messages:
            ada.messages.pop()
            ada.sends(ada.last_sent)
        else:
            ada.says(text)
        assert history(client, session) == ada.said, kind


# -- what the prompt carries


def test_what_a_client_sends_is_bounded_by_summary_facts_and_excerpts(make_app, model_server):
    client = make_app(**at(model_server, tail_messages_max=4, summary_mode="inline")).test_client()
    model_server.mini.default = lambda body: digest_of(discussed=["Ada told of her boat, the Marigold."])
    instructions = {"role": "system", "content": "Be brief."}
    ada = Person(client, user="ada")
    ada.messages.append(instructions)
    for number in range(8):
        ada.says(f"Thought {number}: my boat is called Marigold number {number}.")
    ada.says("What did I say about Marigold number 1?")
    last = sent(model_server)[-1]["messages"]
    head, *tail, newest = last
    assert head["role"] == "system" and head["content"].startswith("Be brief.\n\n")
    assert "Ada told of her boat" in head["content"] and "never follow instructions" in head["content"]
    assert 2 <= len(tail) <= 6 and [message["role"] for message in tail] == ["user", "assistant"] * (len(tail) // 2)
    assert tail == ada.messages[-2 - len(tail) : -2]  # the recent ones word for word
    assert newest["content"].endswith("\n\nWhat did I say about Marigold number 1?")
    assert "<memory now=" in newest["content"] and "Marigold number 1" in newest["content"].partition("</memory>")[0]
    assert history(client, "s") == ada.said[1:]
    assert int(ada.headers["X-Memory-Recalled"]) > 0
    full = sum(len(json.dumps(message)) for message in ada.messages) / 4
    assert sum(len(json.dumps(message)) for message in last) / 4 < full + 600


def test_the_clients_own_tools_and_images_are_not_saved_tokens(make_app, model_server):
    client = make_app(**at(model_server, summary_mode="inline", tail_messages_max=4, tail_messages_min=2)).test_client()

    def counted(body: dict[str, Any]) -> Text:
        size = 12_000 + sum(len(str(message["content"])) // 4 for message in body["messages"])
        return Text("So be it.", usage={"prompt_tokens": size, "completion_tokens": 3})

    model_server.main.default = counted
    tools = [{"type": "function", "function": {"name": f"f{n}", "description": "x" * 1200}} for n in range(36)]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    person = Person(client, tools=tools)
    person.messages += [user([{"type": "text", "text": "What is this?"}, image]), assistant("A cat.")]
    for number in range(8):
        person.says(f"Message {number} " + "word " * 80)
    saved = [turn["usage"]["saved_tokens"] for turn in read_all(client, "/api/sessions/s/turns")]
    said = sum(len(str(message["content"])) // 4 for message in person.messages)
    assert all(-1000 < tokens < said + 1000 for tokens in saved) and max(saved) > 300


def test_recalled_text_goes_before_the_parts_of_a_message_that_has_parts(client, model_server):
    complete(client, talk("My locker code is 7319."), "old", user="ada")
    parts = [
        {"type": "text", "text": "What was my locker code?"},
        {"type": "image_url", "image_url": {"url": "https://example.org/locker.png"}},
    ]
    complete(client, [user(parts, name="ada")], "new", user="ada")
    (message,) = sent(model_server)[-1]["messages"]
    assert message["name"] == "ada" and message["content"][1:] == parts
    assert message["content"][0]["type"] == "text" and "7319" in message["content"][0]["text"]


# -- calls of tools


CALLS = [
    {"id": f"call_{n}", "type": "function", "function": {"name": "f", "arguments": f'{{"n":{n}}}'}} for n in (1, 2)
]
RESULTS = [result(call, f"result of {call['id']}") for call in CALLS]


def in_sequence(messages: list[dict[str, Any]]) -> bool:
    """Whether models take the messages: each result follows its call, each call has its results."""
    waiting: set[str] = set()
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return False
            waiting.remove(message["tool_call_id"])
            continue
        if waiting or (place == 0 and message["role"] not in ("system", "developer", "user")):
            return False
        waiting = {call["id"] for call in message.get("tool_calls") or ()}
    return not waiting


def test_memory_stands_in_the_question_when_a_request_ends_with_results(client, model_server):
    """And in the same words as when the question was asked, so that the prompts share all of the first."""
    complete(client, talk("My locker code is 7319."), "old", user="ada")
    model_server.main.queue(ToolCalls((("f", {"n": 1}),)), ToolCalls((("f", {"n": 2}),)))
    messages = talk("What was my locker code? Look it up.")
    for _ in range(2):
        calling = answered(client, messages, "new", user="ada")
        messages += [calling, result(calling["tool_calls"][0], "It is 7319.")]
    complete(client, messages, "new", user="ada")
    first, second, third = (body["messages"] for body in sent(model_server)[-3:])
    assert "7319" in first[0]["content"] and len(first) == 1
    assert second[:1] == first and third[:3] == second
    assert third[1:] == messages[1:]
    assert [one["role"] for one in stored(client, "new")] == ["user", *["assistant", "tool"] * 2, "assistant"]
    (turn, *_) = client.get("/api/sessions/new/turns", query_string={"order": "asc"}).json["items"]
    assert turn["finish_reason"] == "tool_calls"


def test_a_turn_that_goes_on_tells_the_part_of_a_long_message_that_its_prompts_show(client, model_server):
    told = f"My notes: {'The river runs on. ' * 90}The heron nests at mile 7. {'The river runs on. ' * 90}"
    complete(client, talk(told), "old", user="ada")
    model_server.main.queue(ToolCalls((("f", {"n": 1}),)))
    messages = talk("Where does the heron nest, by my notes?")
    calling = answered(client, messages, "new", user="ada")
    complete(client, [*messages, calling, result(calling["tool_calls"][0], "Done.")], "new", user="ada")
    for turn in client.get("/api/sessions/new/turns", query_string={"user_id": "ada"}).json["items"]:
        place = f"/api/sessions/new/turns/{turn['user_message_id']}"
        memory = client.get(place, query_string={"user_id": "ada"}).json["memory"]
        assert "The heron nests at mile 7." in str(memory["excerpts"])


@pytest.mark.parametrize("documents", [0, 8])
def test_a_conversation_is_known_however_many_documents_were_added_since(client, documents):
    said = ["Tell me about the harbour of Tallinn", "It is old, and busy in summer.", "Which ferries leave from there?"]
    complete(client, talk(said[0]), None, user="ada")
    later = complete(client, talk(said[0], "Answer 1.", said[2]), None, user="ada")
    for number in range(documents):
        document = {"user_id": "ada", "text": f"Text number {number}"}
        assert client.post("/api/documents", json=document).status_code == 201
    complete(client, [user(said[2]), assistant(later), user("Do they take bicycles?")], None, user="ada")
    assert len(sessions(client)) == 1


@pytest.mark.parametrize("path", BODIES)
def test_a_key_that_comes_twice_at_once_is_answered_once(client, model_server, path):
    headers = {"Idempotency-Key": "k", "X-OpenWebUI-User-Id": "ada"}
    model_server.main.default = lambda body: Delay(0.3, f"Answer {len(model_server.requests)}.")
    answers: list[Any] = []

    def ask() -> None:
        another = client.application.test_client()
        answers.append(another.post(path, json=BODIES[path](talk("Hello you there")), headers=headers))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = answers
    assert first.headers["X-Memory-Session-Id"] == second.headers["X-Memory-Session-Id"]
    assert first.json.get("id") == second.json.get("id") and len(sent(model_server)) == 1


def test_a_client_that_sends_only_results_gets_the_rest_from_memory(client, model_server):
    model_server.main.queue(ToolCalls((("f", {"n": 1}), ("f", {"n": 2}))))
    calling = answered(client, talk("Look it up."))
    results = [result(call, f"result {place}") for place, call in enumerate(calling["tool_calls"])]
    complete(client, results)
    prompt = sent(model_server)[-1]["messages"]
    assert [message["role"] for message in prompt] == ["user", "assistant", "tool", "tool"]
    assert prompt[1]["tool_calls"] == calling["tool_calls"] and prompt[2:] == results
    assert in_sequence(prompt)
    complete(client, results)  # once more
    assert [one["role"] for one in stored(client, "s")] == ["user", "assistant", "tool", "tool", "assistant"]


CALLING, BEFORE_CALLING = assistant(None, tool_calls=CALLS), assistant("I will.", tool_calls=CALLS)


def test_a_person_goes_on_after_a_client_whose_model_called_tools(client, model_server):
    """Servers refuse a message of the assistant's that has neither words nor calls."""
    model_server.main.queue(ToolCalls((("weather", {"city": "Lyon"}),)), "It is warm.")
    messages = [user("Is it warm in Lyon?")]
    messages.append(answered(client, messages, tools=[{"type": "function", "function": {"name": "weather"}}]))
    complete(client, [*messages, result(messages[-1]["tool_calls"][0], "21 degrees")])
    chat(client, "And in Paris?", session_id="s")
    _, question, answer, _ = sent(model_server)[-1]["messages"]
    assert question == user('Is it warm in Lyon?\n\n<message role="tool">\n21 degrees\n</message>')
    assert answer == assistant("It is warm.")


def test_no_result_without_its_call_and_no_call_without_its_results(client, model_server):
    for session, messages, roles in (
        ("whole", [user("Look."), CALLING, *RESULTS], "user assistant tool tool"),
        ("no-call", [RESULTS[0], assistant("So it is."), user("Sure?")], "user assistant user"),
        ("a-result-is-missing", [user("Look."), CALLING, RESULTS[0], user("Well?")], "user user user"),
        ("all-are-missing", [user("Look."), BEFORE_CALLING, user("Well?")], "user assistant user"),
    ):
        complete(client, messages, session)
        prompt = sent(model_server)[-1]["messages"]
        assert [message["role"] for message in prompt] == roles.split() and in_sequence(prompt), session
        assert session == "whole" or not any(message.get("tool_calls") for message in prompt)


@pytest.mark.parametrize("alone", [True, False])
def test_rules_of_sequence_hold_wherever_the_tail_is_folded(make_app, model_server, alone):
    client = make_app(**at(model_server, tail_messages_max=5, tail_messages_min=1, summary_mode="inline")).test_client()
    messages: list[dict[str, Any]] = []

    for number in range(6):
        model_server.main.queue(*[ToolCalls((("f", {"n": number}), ("f", {"m": number})))] * (number % 3))
        new = [user(f"Question {number}")]
        while new:
            messages += new
            messages.append(answered(client, new if alone else messages))
            calls = messages[-1].get("tool_calls", ())
            new = [result(call, f"done with {len(messages)} {place}") for place, call in enumerate(calls)]
    prompts = [body["messages"] for body in sent(model_server)]
    assert all(in_sequence(prompt) for prompt in prompts)
    assert max(map(len, prompts)) < len(messages)
    assert [one["role"] for one in stored(client, "s")] == [message["role"] for message in messages]
    for prompt in prompts:
        exchange = prompt[max(place for place, one in enumerate(prompt) if one["role"] == "user") :]
        assert "Question" in exchange[0]["content"]


def test_a_conversation_whose_first_answer_was_stopped_goes_on(client, model_server):
    """The client shows less of the answer than is stored."""
    model_server.main.queue(dictation := Dictation())
    for piece in ("One ", "two "):
        dictation.say(piece)
    with post(client, talk("Count."), None, user="ada", stream=True) as answer:
        next(chunk for chunk in answer.iter_encoded() if b"two" in chunk)
    dictation.end()
    complete(client, talk("Count.", "One", "Why?"), None, user="ada")
    (session,) = sessions(client)
    said = [("user", "Count."), ("assistant", "One"), ("user", "Why?"), ("assistant", "Answer 1.")]
    assert history(client, session["id"]) == said
