"""When to look back: the lists were written before the rules (the held-out ones after), as people really type."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.triggers import read

TALK = ("Which airport is closest to Lisbon?", "Humberto Delgado, 7 km from the centre.")

SMALL_TALK = """
hi
Hello!
hey there
hiya :)
heyyy
Good morning!
good mornin
morning!
Good evening, how are you?
how are you
how are you doing today?
hows it going
what's up?
sup
yo
thanks
Thank you so much!
thx
thanks a lot, that was really helpful
ty!
tysm 🙏
thnaks
hi! thanks, that's great :)
ok
ok cool
okay, got it
k
alright
Sounds good!
perfect, thank you
great
awesome!!
that makes sense
I see
makes sense, thanks
yes
yep
no
nope
yes please
no thanks
sure
haha
hahahaha
lol
lmao 😂
😂😂😂
👍
❤️
:)
bye
goodbye!
see you later
good night, talk to you tomorrow
have a nice day!
you're welcome
I'm fine, thanks. And you?
你好
谢谢！
好的，哈哈
"""

REFERENCES = """
what did we discuss
What did we talk about last time?
as I mentioned, I can't eat gluten
As I said before, money is tight
remember when I told you about my landlord?
do you remember my dog's name?
you said earlier that it would take two hours
last time we talked you gave me a list of books
let's go back to the hiking idea
I'd like the one you suggested
do you recall what my budget was
I told you I don't like cilantro
didn't i tell you already that im vegetarian
what was that restaurant you recommended?
whats the name of the book u recommended
can you remind me what we decided about the database?
remind me what I'm allergic to
like i said, the deadline is friday
we talked about this already
what did I say about the kitchen renovation
where did we leave off?
let's pick up where we left off
continue from our last conversation
in our previous chat you mentioned a visa
you mentioned a library for parsing dates, which one was it
what were the three options you gave me
have i ever told you about my brother
did I mention that I moved to Berlin?
I think I already told you this, but I hate mondays
based on what I told you, which laptop fits me
given what you know about me, what should I cook
what do you know about me?
what do you remember about my job
earlier you wrote a regex for phone numbers, can you send it again
as discussed, please draft the email to the landlord
the plan we made for Japan
what was the plan again?
what was my score again
how did we solve that bug with the login
you never answered my question about taxes
according to what we agreed on, when do I start?
what's my name?
where do I live?
how old is my daughter?
how is my project going
what's my sister's address
how did the interview I was worried about turn out, did I tell you?
any update on the bug?
can you send me the recipe again
how is she doing?
did it work?
what did he say
I changed my mind about the hotel we picked
refering back to the thing i asked u about yesterday
u remeber the song i liked?
same as last time please
我们之前讨论了什么？
你上次说的那本书叫什么
我提到过我对花生过敏
还记得我的猫叫什么吗
"""

PLAIN = """
How do I fix a TypeError in FastAPI?
best pizza dough hydration
Explain quantum entanglement like I'm five
Translate "good morning" into Japanese
What is the capital of Mongolia?
write a haiku about autumn leaves
Is it safe to eat raw salmon while pregnant
python read csv skip first 3 rows
I just adopted a kitten, any tips for the first week?
Why is the sky blue?
Compare PostgreSQL and MySQL for a small blog
docker compose healthcheck not working
My knee hurts after running, what could it be?
recommend a sci-fi novel
How much protein is in 100 g of lentils?
Give me a workout for sore shoulders
We're planning a trip to Lisbon in May
I got the job at Siemens!
what should I wear to a wedding in winter
ERR_CONNECTION_REFUSED on localhost:3000
how 2 get rid of ants in kitchen
Caroline called me and she sounded sad
can u explain git rebase
the user-dashboard loads slowly since v2.1
I feel anxious about the exam
What's a good gift for a ten year old who likes dinosaurs?
怎么用Python读取CSV文件？
推荐一家北京的川菜馆
Hello is what the program should print, but it segfaults
thanks to the new index the query takes 3 ms, is that fast?
"""

OPENINGS = """
hey, quick question about my tax return
Hi! How do I reset a Fritzbox router?
hello, I need a recipe for banana bread
Thanks! And what about the train to Porto?
ok cool, now write the unit tests
good morning, what's the weather like in Oslo
haha nice. my cat does the same with cardboard boxes
thx, but it still throws a KeyError
lol my boss just quit
yes, the blue one with 16 GB of RAM
no, I'm allergic to shellfish
great, book a table at Luigi's
Hey there! I'm Anna and I work as a nurse
sounds good, let's use Redis then
thank you! one more thing: does it support OAuth?
How are you? I've just come back from the dentist
bye the way, what is a monad
sure, my email is anna@example.com
你好，帮我写一封辞职信
谢谢，那护照怎么办理
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()
