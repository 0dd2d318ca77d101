"""What frameworks write into a person's messages is not stored as theirs, and their conversations are known again.

The requests have the form that these programs sent to a server that wrote them down (LangChain 1.5, LlamaIndex 0.14,
CrewAI 1.15, DSPy 3.4, smolagents 1.26, Haystack 3.4, Pydantic AI 2.38, Instructor 1.17, Open WebUI 0.12, SillyTavern
1.12, llmcord, n8n 2.41).
"""

import pytest

from tests.http import history, sessions
from tests.model_server import prompts
from tests.openai import assistant, complete, post, talk, user

pytestmark = pytest.mark.scripted

ASKED = "Where does my boat lie? I forgot.\nIt is blue."
FORM = "Respond with the corresponding output fields, starting with the field `[[ ## answer ## ]]`."
FILLED_IN = {
    "LangChain, documents": "Use the following pieces of retrieved context to answer the question.\n"
    "Question: {} \nContext: My yacht lies in Genoa.\n\nI own a hotel. \nAnswer:",
    "LangChain, documents first": "Answer the question based only on the following context:\n\n"
    "My yacht lies in Genoa.\n\nQuestion: {}\n",
    "LangChain, tools": "Answer as best you can.\n\nQuestion: the input question you must answer\n"
    "Thought: think\n\nBegin!\n\nQuestion: {}\nThought:",
    "LangChain, history": "A friendly conversation.\n\nHuman: Hi.\nAI: Hello!\nHuman: {}\nAI:",
    "LlamaIndex": "Context information is below.\n---------\nMy yacht lies in Genoa.\n---------\nAnswer the query.\n"
    "Query: {}\nAnswer: ",
    "LlamaIndex, refined": "New Context: I own a hotel.\nQuery: {}\nOriginal Answer: In Genoa.\nNew Answer: ",
    "Haystack": "Given these documents, answer the question.\nDocuments:\nI own a hotel.\n\nQuestion: {}\nAnswer:",
    "CrewAI": "\nCurrent Task: {}\n\nThis is the expected criteria for your final answer: A short answer\n"
    "you MUST return the actual complete content as the final answer, not a summary.",
    "CrewAI, without tools": "\nCurrent Task: {}\n\nProvide your complete response:",
    "DSPy": f"[[ ## question ## ]]\n{{}}\n\n{FORM}",
    "DSPy, documents": f'[[ ## context ## ]]\n["I own a hotel."]\n\n[[ ## question ## ]]\n{{}}\n\n{FORM}',
    "Instructor": "{}\n\nReturn the correct JSON response within a ```json codeblock. not the JSON_SCHEMA",
    "smolagents": "New task:\n{}",
    "smolagents, next task": "Observation:\nIt is 21 degrees.\nNew task:\n{}",
    "Open WebUI, documents": "### Task:\nRespond to the user query using the provided context...\n\n<context>\n"
    '<source id="1">I own a hotel.</source>\n</context>\n\n<attached_files>\n<file name="boats.txt"/>\n'
    "</attached_files>\n\n{}",
    "Open WebUI": '<attached_files>\n<file name="boats.txt"/>\n</attached_files>\n\n{}',
}
OWN = (
    "Question: is my cat ill? She eats nothing.",
    "Translate into French:\nEnglish: good morning\nFrench:",
    "I noted three things:\nPrice: 20 euros\nInput: none\nSize: M",
    "Observation: two herons at the pond.\n\nTask: count them.",
    "Answer my mail about the documents:\nHi Tom,\nrequest: please send the papers\nThanks",
    "I have a query regarding information on my plan.\nInput: the date is May.",
    "Fill in my form. I am Ann, 42.\nName:\nAge:",
    "Ask me what my program does, then plan it in Rust.\n\ninput:\n\noutput:",
    "Write to my landlord for me: the heating is cold.\nSubject: heating\nMessage:\nYours:",
    "Make a table of it.\n\nReturn it as JSON in a code block.",
    "1 validation error: what does it mean?",
    "Validation feedback: the form takes no umlauts.",
)


@pytest.mark.parametrize("form", FILLED_IN.values(), ids=FILLED_IN)
def test_the_words_that_a_program_fills_into_its_prompt_are_the_persons_and_the_rest_is_not(client, model_server, form):
    sent = form.format(ASKED)
    complete(client, [user(sent)])
    assert history(client, "s")[0] == ("user", ASKED)
    assert prompts(model_server)[-1][-1]["content"].endswith(sent), "the model gets the prompt as it came"


@pytest.mark.parametrize("words", OWN)
def test_what_a_person_writes_in_such_a_form_stays_whole(client, words):
    complete(client, [user(words)])
    assert history(client, "s")[0] == ("user", words)


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("Thought: look.\nAction: weather\nAction Input: {}", "Observation: 21 degrees in Lyon"),
        ("<code>\nprint(weather())\n</code>", [{"type": "text", "text": "Observation:\nExecution logs:\n21 degrees"}]),
        (
            '{"degrees": "warm"}',
            '1 validation error:\n```json\n[{"loc": ["degrees"]}]\n```\n\nFix the errors and try again.',
        ),
        ('{"degrees": "warm"}', "Validation feedback:\ndegrees: no integer\n\nFix the errors and try again."),
    ],
)
def test_what_comes_of_a_call_that_is_text_is_the_result_of_a_tool(client, model_server, call, found):
    words = found if isinstance(found, str) else found[0]["text"]
    model_server.main.queue(call, "It is 21 degrees.")
    complete(client, [user("Is it warm?")])
    messages = [user("Is it warm?"), assistant(call), user(found)]
    complete(client, messages)
    line = [("user", "Is it warm?"), ("assistant", call), ("tool", words), ("assistant", "It is 21 degrees.")]
    assert history(client, "s") == line
    assert prompts(model_server)[-1][-1] == user(found)
    complete(client, [*messages, assistant("It is 21 degrees."), user("Thanks.")])
    assert history(client, "s")[:5] == [*line, ("user", "Thanks.")]


def test_the_next_task_behind_what_a_call_led_to_is_the_persons(client):
    messages = [user("Is it warm?"), assistant("Calling tools:\nweather")]
    content = [{"type": "text", "text": "Observation:\n21 degrees\nNew task:\nMy cat is called Miso."}]
    complete(client, [*messages, user(content)])
    assert history(client, "s")[2] == ("user", "My cat is called Miso.")


def session_of(client, messages):
    return post(client, messages, None, user="ada").headers["X-Memory-Session-Id"]


def test_a_conversation_is_known_although_a_program_writes_its_calls_in_another_form(client, model_server):
    model_server.main.queue('{"answer": "Noted."}', "She is seven.")
    first = session_of(client, [user("My cat is called Miso.")])
    messages = [user("My cat is called Miso."), assistant("Calling tools:\nfinal_answer"), user("How old is she?")]
    assert session_of(client, messages) == first
    assert [words for role, words in history(client, first) if role == "user"] == [
        "My cat is called Miso.",
        "How old is she?",
    ]


def test_conversations_that_begin_with_the_same_examples_are_kept_apart(client, model_server):
    examples = talk("The shop was closed and the staff rude.", "negative sentiment, strongly")
    texts = ("I loved the soup.", "The bread was stale.")
    found = [session_of(client, [*examples, user(text)]) for text in texts]
    assert found[0] != found[1]
    assert [history(client, session)[2] for session in found] == [("user", text) for text in texts]
    reply = history(client, found[0])[-1][1]
    assert session_of(client, [*examples, user(texts[0]), assistant(reply), user("And the tea.")]) == found[0]


def test_the_steps_of_an_agent_that_works_in_one_message_are_one_turn(client, model_server):
    model_server.main.queue(
        "I need the weather.\nAction: weather", "Final Answer: it is warm.", "Yes.", "It is here, too."
    )
    first = "Answer with these tools: weather\n\nQuestion: Is it warm in Lyon?\nThought:"
    session = session_of(client, [user(first)])
    step = f"{first} I need the weather.\nAction: weather\nObservation: 21 degrees\nThought:"
    assert session_of(client, [user(step)]) == session
    assert prompts(model_server)[-1][-1]["content"].endswith(step), "the step was answered, and not the first again"
    assert history(client, session) == [("user", "Is it warm in Lyon?"), ("assistant", "Final Answer: it is warm.")]
    assert session_of(client, [user("Question: Is it warm in Oslo?\nThought:")]) != session
    assert post(client, [user(step)], None, user="bob").headers["X-Memory-Session-Id"] != session


def test_a_programs_prompt_around_a_question_leaves_its_answer_alone(client, model_server):
    """A program that picks its tools asks the model apart, with the words that the chat has been asked already."""
    model_server.main.queue("It is 21 degrees.", '{"tools": []}', "It is dry, too.")
    session = session_of(client, [user("Is it warm in Lyon?")])
    pick = "Pick a tool: weather\n\nUser: Is it warm in Lyon?\nAnswer:"
    assert session_of(client, [user(pick)]) != session
    assert session_of(client, talk("Is it warm in Lyon?", "It is 21 degrees.", "And dry?")) == session
    assert history(client, session) == [
        *(("user", "Is it warm in Lyon?"), ("assistant", "It is 21 degrees.")),
        *(("user", "And dry?"), ("assistant", "It is dry, too.")),
    ]
    assert history(client, session, branch=1) == []


def test_a_group_of_characters_is_one_session(client):
    """SillyTavern asks for each character's words, and sends them again with the character's name before them."""
    cards, last = (
        {"role": "system", "content": "Bram bakes. Cleo sails."},
        {"role": "system", "content": "[Stay brief.]"},
    )
    chat = [cards, assistant("Bram: Bread?"), assistant("Cleo: A boat?")]
    for words in ("My boat is called Swan.", "What is it called?"):
        chat.append(user(words))
        for name in ("Bram", "Cleo"):
            nudge = {"role": "system", "content": f"[Write the next reply only as {name}.]"}
            reply = complete(client, [*chat, nudge, last], None, user="ada")
            chat.append(assistant(f"{name}: {reply}"))
    (session,) = sessions(client)
    line = history(client, session["id"])
    assert [words for role, words in line if role == "user"] == ["My boat is called Swan.", "What is it called?"]
    assert [role for role, _ in line] == ["assistant"] * 2 + ["user"] + ["assistant"] * 2 + ["user", "assistant"]


def test_in_discord_each_persons_words_are_stored_under_their_id(client):
    first = [user("<@77>: My dog is called Rex.")]
    reply = complete(client, first, None)
    complete(client, [*first, assistant(reply), user([{"type": "text", "text": "<@88>: Mine is called Pip."}])], None)
    (session,) = sessions(client)
    items = client.get(f"/api/sessions/{session['id']}/messages").json["items"]
    said = [(item["name"], item["content"]) for item in items if item["role"] == "user"]
    assert said == [("<@77>", "My dog is called Rex."), ("<@88>", "Mine is called Pip.")]


def test_a_conversation_is_known_by_its_last_answer_behind_a_summary_of_the_program_s(client, model_server):
    model_server.main.queue("Noted.", "It is moored in Split, at the quay.", "Until May.")
    first = session_of(client, [user("My boat is blue.")])
    session_of(client, [*talk("My boat is blue.", "Noted."), user("Where is it?")])
    note = user("Here is a summary of the conversation to date:\n\nThey have a boat.")
    short = [note, assistant("It is moored in Split, at the quay."), user("Until when?")]
    assert session_of(client, short) == first
    asked = [words for role, words in history(client, first) if role == "user"]
    assert asked == ["My boat is blue.", "Where is it?", "Until when?"]


def test_an_agents_window_of_the_last_exchanges_carries_on_its_session(client):
    """n8n's memory of three exchanges leaves out the older ones, and the system message comes first or not at all."""
    told, asked = [], ["My cat is called Miso.", "I live in Lyon.", "I play chess.", "I drink tea.", "And my cat?"]
    for words in asked:
        told.append(user(words))
        told.append(assistant(complete(client, told[-7:], None, user="ada")))
    (session,) = sessions(client)
    assert [words for role, words in history(client, session["id"]) if role == "user"] == asked
