"""Small talk: greetings, thanks, nods, laughter and farewells, in any order, and nothing else.

A message is small talk when the phrases of the table and their padding cover all of its words; one word that no
phrase has makes it a message with something to say.  Told which words are keywords, it looks past the others.
Letters written twice count once ("heyyy"), swapped ones as if they were not ("thnaks"), emoji are phrases.  English in
its many spellings, everyday Chinese, a little of others.

Guarantee: pure, linear, and never true for a text of more than `MOST_CHARS` characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import product

from search_index.remembered import remembered

MOST_CHARS = 300

# The tables are written as patterns of words: "/" separates alternatives, "+" joins words, "_" is no word.
_SMALL_TALK = """
    heyo/ayo/heyy/hi+hi/ello/oi/aloha/salutations/hiya/hi/hello/hey/hiya/heya/hai/hullo/hallo/howdy/yo/sup/greetings/
    gm/wassup/wazzup/henlo/hii/hellow; good+morning/good+mornin/goodmorning/good+afternoon/good+evening/good+day/
    morning/mornin/afternoon/evening; welcome+back/long+time+no+see/im+back/back+again/i+am+back/its+me/its+me+again/
    knock+knock; whats/what+is up/new/good/happening/cooking; how are/r you/u/ya/things/we/ya+all _/doing/today/
    doing+today/feeling/feeling+today/going/this+morning/tonight; how is/s it/everything/life/your+day/your+week/
    your+weekend _/going/been/doing _/today/so+far; hows/howz it/everything/life/things/your+day/your+week/
    your+weekend/u/you _/going/been/doing _/today/so+far; how have/ve you/u/things been _/lately/doing; how+do+you+do/
    how+about+you/and+you/and+u/wbu/hbu/what+about+you/are+you+there/you+there/anyone+there/u+there/hru; nice/good/
    great/lovely/pleased to meet/see/hear+from you/u _/too/again; hope you/u/youre/you+are/u+r are/r/_ doing/feeling/_
    well/ok/okay/good/great/fine; thanks/thank/thanx/thnx/thx/tnx/tks/thks/ty/tysm/tyvm/tyy/thankyou/thanku _/you/u/ya/
    god so+much/a+lot/a+ton/a+million/a+bunch/very+much/again/alot/sm/_; thanks/thank+you/thx/ty/thank+u for _/all/
    asking/everything/that/this/it/sharing/explaining/listening/helping/helping+me/clarifying/answering/understanding/
    checking/trying/the+help/your+help/the+info/the+information/the+advice/your+advice/the+tip/the+tips/
    the+explanation/your+answer/the+answer/your+time/your+patience/your+support/the+support/the+suggestion/
    the+suggestions/the+reply/the+quick+reply/the+response/the+quick+response/the+chat/the+heads+up/the+clarification/
    the+reminder/all+the+help/all+your+help; appreciate+it/much+appreciated/i+appreciate+it/i+appreciate+that/
    i+really+appreciate+it/really+appreciate+it/appreciated/cheers/kudos/many+thanks; youre/you+are/ur/u+r/your
    the+best/awesome/amazing/great/a+lifesaver/a+star/a+legend/a+genius/so+kind/so+sweet/so+helpful/so+smart/so+funny/
    so+nice/so+cool/welcome/very+welcome/most+welcome/right/funny/smart/sweet/kind/too+kind/good/so+good/hilarious/
    incredible/brilliant/very+kind; you+rock/good+bot/good+boy/good+girl/bad+bot/that+helps/that+helped/this+helps/
    that+worked/it+worked/it+works/works/works+now/it+works+now/that+works/worked/big+help/lifesaver/what+a+help/
    exactly+what+i+needed/just+what+i+needed/thats+exactly+what+i+needed; ok/okay/okey/oki/okie/okie+dokie/okey+dokey/
    okayy/k/kk/oks/okk/alright/alrighty/all+right/aight/right/righto/very+well/okay+then; got+it/got+you/gotcha/gotchu/
    i+got+it/i+see/isee/oh+i+see/i+understand/i+get+it/i+get+that/now+i+get+it/i+know/i+know+right/ikr/i+agree/i+guess/
    i+guess+so/i+think+so/i+hope+so/hope+so/i+suppose/i+like+it/i+love+it/i+like+that/i+love+that/i+will/i+do/i+am/
    i+did/i+can/i+hear+you/i+feel+you; understood/noted/roger/roger+that/copy+that/sure/sure+thing/surely/of+course/
    ofc/absolutely/definitely/defo/exactly/indeed/totally/certainly/for+sure/fs/fair/fair+enough/fair+point/
    makes+sense/make+sense/that+makes+sense/that+makes+total+sense/makes+total+sense/makes+perfect+sense/
    it+makes+sense/sounds+about+right/point+taken/good+enough; sounds/sound/looks/seems/that+sounds/that+looks/
    this+looks/that+seems/it+sounds good/great/perfect/fine/nice/lovely/fun/awesome/amazing/like+a+plan/right/cool/
    reasonable/fair/wonderful/interesting/delicious; works+for+me/that+works+for+me/fine+by+me/fine+with+me/deal/
    its+a+deal/cool/coolio/kool/nice/nice+one/noice/great/gr8/good/gud/perfect/excellent/awesome/awsome/amazing/
    wonderful/fantastic/brilliant/lovely/sweet/neat/superb/splendid/terrific/marvelous/magnificent/dope/lit/epic/rad/
    sick/stellar/beautiful/impressive/incredible/fab/fabulous/yummy; good/great/nice/excellent/fine/amazing/fantastic/
    solid work/job/to+know/point/idea/stuff/call/one/question/thinking/answer/advice/tip/choice/explanation/suggestion/
    luck/try/news; wow/whoa/woah/omg/oh+my+god/oh+my/my+god/oh+my+goodness/well+done/congrats/congratulations/bravo/
    yay/woohoo/hooray/whoop/yes/yeah/yea/ya/yah/yep/yup/ye/yas/yesh/yessir/yes+sir/aye/no/nope/nah/naw/not+really/
    not+yet/not+now/maybe/perhaps/probably/possibly/probably+not/maybe+later; i+dont+know/i+do+not+know/idk/dunno/
    no+idea/not+sure/im+not+sure/no+problem/no+prob/no+probs/no+worries/no+need/no+thanks/no+thank+you/no+way/
    no+biggie/no+rush/no+pressure/no+doubt/np/nw/nvm/never+mind/nevermind/forget+it/all+good/were+good/its+nothing/
    dont+worry/dont+worry+about+it/it+happens/of+course+not/why+not; interesting/funny/hilarious/true/so+true/correct/
    agreed/same/same+here/me+too/me+neither/you+too/u+too/likewise/ditto/helpful/useful/fun/cute/crazy/wild/insane/
    enough/clear/all+clear/crystal+clear/good+enough/too+bad/so+sad/sad/oh+no/a+relief/what+a+relief/thats+a+relief/
    kind/kind+of+you/fine/ok+fine; my+bad/my+pleasure/my+apologies/apologies/sorry/sorry+about+that/sorry+for+that/
    im+sorry/so+sorry/oops/whoops/excuse+me/pardon/bless+you/sorry+to+hear+that/no+offense/please/please+do/
    please+go+ahead/go+ahead/go+for+it/lets+go/lets+do+it/lets+do+that/lets+start/ready/im+ready/will+do/done/all+done/
    finally; ill/i+will try/try+it/try+that/do+that/do+it/think+about+it/check+it+out/let+you+know/keep+that+in+mind/
    be+back/be+right+back/be+back+soon/give+it+a+try/give+that+a+try/look+into+it/take+a+look; aw/aww/phew/ugh/hm/hmm/
    mm/mhm/uhuh/uh+huh/huh/uh/um/eh/meh/ah/aha/oh/oof/ooh/ouch/duh/whatever/tada/welp/pff/tsk/sigh/bruh/lol/lmao/lmfao/
    rofl/lel/lul/lmaoo/xd/xdd/kek/heh/teehee/lolz/dead/im+dead; im/i+am/doing/_ good/fine/ok/okay/great/well/alright/
    doing+well/doing+good/doing+fine/doing+great/doing+ok/doing+okay/doing+alright/better+now/all+good/happy/
    happy+to+hear+that/glad/glad+to+hear+that/glad+to+hear+it/so+glad/impressed/feeling+good; not+bad/not+much/
    not+too+bad/pretty+good/cant+complain/same+old/same+old+same+old/nothing+much/nm/so+so/been+better/just+chilling/
    im+bored/bored/just+saying+hi/just+saying+hello/just+wanted+to+say+hi/just+checking+in/just+kidding/jk/kidding/j+k/
    kidding+aside/thats+all+i+needed/thats+what+i+thought/thought+so; bye/bye+bye/byebye/goodbye/good+bye/bb/cya/ciao/
    adios/farewell/cheerio/peace/peace+out/ttyl/ttys/brb/gtg/g2g/later/laters/toodles/over+and+out/hasta+la+vista/l8r/
    bbl/afk; see/c/catch/cu you/ya/u _/later/soon/tomorrow/around/then/again/next+week/next+time/tonight/on+monday/
    in+a+bit/monday; see/c ya/u; talk/speak/chat _/to+you/to+u/to+ya/with+you/more later/soon/tomorrow/again/
    again+soon/next+time; i/_ have+to/need+to/must/should/gotta/got+to/gonna go/run/leave/sleep/head+out/get+going _/
    now/soon; till/til/until next+time/tomorrow/then/later; take+care/stay+safe/good+night/goodnight/nite/gnite/night/
    nighty+night/night+night/gn/nighty/sweet+dreams/sleep+well/sleep+tight/rest+well/off+to+bed/off+to+sleep/
    off+to+work; have/hav/enjoy a/an/your/the/_ good/great/nice/lovely/wonderful/pleasant/fantastic/amazing/blessed/
    rest+of+your/_ day/one/night/evening/weekend/week/time/trip/afternoon/morning/meal/dinner _/too/ahead/as+well/
    there; have+fun/enjoy/thats+all/thats+all+for+now/thats+all+for+today/thats+it/thats+it+for+now/thats+it+for+today/
    nothing+else/im+off/im+done/im+going+to+bed/im+going+to+sleep/im+leaving/im+out/time+for+bed/time+to+sleep/
    heading+out/heading+to+bed/going+to+bed/you+can+go/dismissed; happy/merry birthday/bday/new+year/holidays/friday/
    monday/weekend/easter/thanksgiving/christmas/xmas/halloween/diwali/anniversary/valentines+day; tgif/
    fingers+crossed/good+luck/love+you/love+u/i+love+you/i+love+u/love+it/love+that/love+this/i+like+you/miss+you/
    missed+you/i+missed+you/ily/ilysm/hugs/xoxo/xx/bless/god+bless/kisses/pog/gg/slay/respect; who+are+you/
    what+are+you/are+you+a+bot/are+you+human/are+you+real/are+you+an+ai/are+you+ok/are+you+okay/are+you+still+there/
    still+there/whats+your+name/what+is+your+name/test/testing/ping/pong/tell+me+a+joke/tell+me+something+funny/u+ok/
    you+ok/what+can+you+do/im+just+testing/just+testing; hola/buenos+dias/buenas/buenas+tardes/buenas+noches/buen+dia/
    gracias/muchas+gracias/mil+gracias/de+nada/hasta+luego/que+tal/si/vale/bonjour/salut/bonsoir/merci/merci+beaucoup/
    au+revoir/oui/non/bonne+nuit/bonne+journée/d'accord/daccord/ça+va; guten/schönen morgen/tag/abend/moin/servus;
    danke/danke+schön/danke+dir/vielen+dank/tschüss/tschüs/ja/nein/gut/gute+nacht/bitte/alles+klar/super/genau/grazie/
    grazie+mille/prego/buongiorno/buonasera/buonanotte/arrivederci/va+bene/olá/oi/obrigado/obrigada/bom+dia/boa+noite/
    tchau/привет/здравствуйте/спасибо/пока/да/нет/хорошо/добрый+день/доброе+утро/안녕/안녕하세요/감사합니다/고마워/
    고마워요/네/ㅋㅋ/ㅎㅎ/salam/merhaba/namaste/teşekkürler/dziękuję/dzięki/cześć/tack/hej/dank+je/bedankt/hoi;
    much+obliged/obliged/im+grateful/so+grateful/i+owe+you+one/means+a+lot/that+means+a+lot/glad+to+help/happy+to+help/
    anytime/any+time/good+to+hear/great+to+hear/nice+to+hear/cant+wait/looking+forward/looking+forward+to+it/cu/ttfn/
    bye+for+now; did+you sleep+well/sleep+ok; good/great talk/chat/talking+to+you/chatting; signing+off/logging+off/
    ill+be+off/im+heading+out/well+said/you+got+it/you+bet/as+you+wish/my+word/holy+cow/no+kidding/for+real/fr/
    seriously/i+wish/i+hope/hopefully/fingers+crossed/whatever+works/either+way/suits+me/yours/and+yourself/
    take+your+time/no+hurry/see+what+you+mean; how+was+your day/weekend/night/week/holiday; got+that/thats+fine/
    thats+ok/thats+okay/thats+alright/thats+right/my+mistake/take+it+easy
"""
# Words that small talk is padded with; alone they are none.
_PADDING = """
    so/very/much/really/oh/well/too/again/all/everyone/everybody/there/now/today/here/man/dude/bro/buddy/mate/friend/
    pal/guys/sir/madam/maam/dear/babe/folks/pretty/super/just/quite/absolutely/totally/honestly/actually/also/and/but/
    then/though/tho/pls/plz/as+always/as+usual/for+now/for+today/very+much/a+lot/my+friend/my+dear/that/thats/that+is/
    that+was/this+is/this+was/its/it+is/it+was/a/an/what+a/how/such+a/such/sooo/assistant/bot/ai/chatbot/chat/computer/
    by+the+way/btw/haha/of+you/kinda/indeed/only/truly/sincerely/to+you/you/u/i+guess/i+think/already/more/enough/
    since/as+well/at+all/yet/human/today/tonight/tomorrow/tmrw/tmr/tmw/yesterday/later/soon/this+morning/this+week/
    next+week/last+night/my+man/sunshine; for/of/_ the/your/ur/all+the/all+your/this/that/such _/great/quick/good/
    amazing/kind/lovely/nice/detailed/useful/helpful/honest help/info/information/advice/tip/tips/explanation/answer/
    answers/time/patience/support/suggestion/suggestions/ideas/reply/response/chat/clarification/reminder/confusion/
    wait/trouble/delay/feedback/update/insight/insights/words/talk/company/work
"""
# Words that only say how one feels about what was said: a message with no other content has nothing to look for.
_COURTEOUS = """
    help appreciate appreciated patient patience worries worry fair slept sleep bud pal buddy dude bro mate friend ha
    obliged grateful gratitude kind kindness polite sweet sweetie honey darling hug hugs kiss kisses pleasure honor
    honored delighted excited proud thrilled relief relieved luck lucky blessed congrats congratulations respect gosh
    goodness heck damn dang geez jeez yikes legend genius lifesaver champ chat chatting smile laugh laughing laughed
    joke joking kidding funny silly weird strange odd surprising surprised surprise impressive impressed incredible
    unbelievable brilliant curious hurry wyd whassup whaddup cya tmrw heyo g'night vibes awkward whoops hilarious
    gracious thoughtful thankful yourself words terrific inspiring sigh yawn cheer adorable compliment compliments
    insightful informative understandable gotcha yup
"""
COURTEOUS = frozenset(_COURTEOUS.split())

_UNSPACED = "\u3005-\u3007\u3041-\u309f\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
# Greetings and nods of scripts without spaces run together; no text is read in two ways, so matching is linear.
_UNSPACED_PHRASES = re.compile(
    "(?:(?:那就?|就|真的?)?"
    "(?:[你您]们?好|大家好|嗨|哈[喽啰罗]|[早晚]安|[早晚]上好|[上中下]午好|早|好久不见|在吗|在不在|我回来|[你您]好吗"
    "|[你您]?最近(?:好吗|怎么样|如何)|[你您](?:呢|真|太|辛苦)|吃了吗|干嘛呢|非常感谢|感谢|多谢|谢++|感激不尽|帮助|帮忙"
    "|不客气|不用谢|不谢|没关系|没事|没问题|没错|没有|好|行|可以|中|成|嗯++|恩++|哦++|噢++|啊++|呃++|唉++|收到|明白"
    "|知道|了解|懂|我(?:知道|明白|懂|很好|也是|也觉得|走|睡|先走|先睡)|原来如此|先?这样|是|对不起|对|不好意思|不用"
    "|不要|不|当然|太|很|不错|厉害|棒|牛|赞|优秀|完美|可爱|有意思|有趣|好玩|好笑|笑死我?|有道理|听起来不错|哈++|嘿++"
    "|呵++|嘻++|呜++|再见|拜++|(?:[明后]天|晚上|晚点|待会儿?|一会儿?|下次|改天|回头)再?(?:见|聊|说)|回[见聊]|早点休息"
    "|好梦|睡觉|加油|辛苦|抱歉|打扰|真的吗?|随便|无所谓|开玩笑|(?:生日|新年|圣诞|节日|中秋|春节)快乐|周末愉快|恭喜"
    "|祝[你您]?好运|[我]?爱你|[你您]是谁|こんにちは|こんばんは|おはよう|ありがとう|どうも|はい|うん|いいえ|すみません"
    "|ごめん|さようなら|おやすみ|またね|です)"
    "(?:[了啦呀啊哦吧呢哟嘛的你您哒滴～ー]|ございます|なさい)*+)+"
)
_LAUGHTER = re.compile(
    r"[bmw]{0,3}a?(?:h[aeiou]){2,}h?|a?(?:ah){2,}a?|(?:j[aei]){2,}j?|(?:[xk]i){2,}|lo(?:lo)*l|(?:ke){2,}k?"
)
_EMOTICON = re.compile(r"(?<![\w/])(?:[:;=8][-'^]?[)(\]\[DPpOo/\\|*3]+|[xX][Dd]+|<3+|[\^>oO;T][_.-][\^<oO;T])(?!\w)")
_ADDRESSED = re.compile(  # Hi Mark!
    r"^(\W*(?i:hi|hello|hey|howdy|good (?:morning|afternoon|evening|night)|thanks|thank you|thx|bye|goodbye|yes|no|ok"
    r"|okay|sure|sorry)(?:\s(?i:again|there|so much"
    r"|a lot))?,?\s+)(?:[DM][ris]{1,2}\.? )?[A-Z][a-z]+(?=\s*(?:[,.!?~:;)]|$))"
)


DOUBLED = re.compile(r"([a-zA-Z])\1+", re.IGNORECASE | re.ASCII)


def once(text: str) -> str:
    """A text with letters that are written twice or more written once: people type sugested and heyyy."""
    return DOUBLED.sub(r"\1", text)


def _expanded(table: str) -> Iterator[str]:
    """The phrases that the patterns of a table stand for."""
    for entry in re.sub(r"/\s+", "/", table).split(";"):
        for choice in product(*(word.split("/") for word in entry.split())):
            yield once(" ".join(part.replace("+", " ") for part in choice if part != "_").replace("'", ""))


_BEGUN, _PADDING_PHRASE, _SPOKEN = range(3)
"""What words in a row are: no more than the beginning of a phrase, padding, or a phrase of small talk."""
_PHRASES = dict.fromkeys(_expanded(_PADDING), _PADDING_PHRASE) | dict.fromkeys(_expanded(_SMALL_TALK), _SPOKEN)
_KINDS = {
    " ".join(words[:end]): _BEGUN for words in map(str.split, _PHRASES) for end in range(1, len(words))
} | _PHRASES
# People swap letters when they type fast; a word's first and last mostly hold.
_JUMBLED = {
    (word[0], "".join(sorted(word)), word[-1]): word
    for phrase, kind in _PHRASES.items()
    if kind == _SPOKEN
    for word in phrase.split()
    if len(word) > 4
}
_WORDS = frozenset(word for phrase in _PHRASES for word in phrase.split())
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_SPLIT, _ASCII_SPLIT = re.compile(f"[{_UNSPACED}～]+|[^\\W{_UNSPACED}]+"), re.compile(r"\w+")


def is_small_talk(text: str, keywords: Sequence[str] | None = None) -> bool:
    """Whether all of a text is phrases of small talk and their padding, in any order; emoji count as such.

    With the text's keywords, words that are none may follow a phrase, and so may courteous ones.
    """
    if len(text) > MOST_CHARS:
        return False
    bare, words = _said(text)
    if not words:
        return any(unicodedata.category(char) in ("So", "Sk") for char in bare) or _EMOTICON.search(text) is not None
    content: set[str] | None = None
    tokens: list[str] = []
    # Where phrases that cover all before may end, and whether one of them was more than padding.
    reached: list[bool | None] = [False, *[None] * len(words)]
    for start, word in enumerate(words):
        spoken = reached[start]
        if spoken is None:
            continue
        phrase = ""
        for end in range(start, len(words)):
            if end == len(tokens):
                tokens.append(_token(words[end]))
            phrase = f"{phrase} {tokens[end]}" if phrase else tokens[end]
            if phrase not in _KINDS:
                break
            kind = _KINDS[phrase]
            if kind != _BEGUN:
                reached[end + 1] = bool(reached[end + 1]) or spoken or kind == _SPOKEN
        if spoken and keywords is not None:
            content = _content(keywords) if content is None else content
            if word not in content and not _IS_UNSPACED.match(word):  # a run without spaces always may say something
                reached[start + 1] = True
    return bool(reached[-1])


@remembered(64, longest=MOST_CHARS)  # each message is asked about twice
def _said(text: str) -> tuple[str, tuple[str, ...]]:
    """A text without names that are addressed and without emoticons, and its words."""
    addressed = _ADDRESSED.match(text)
    bare = _EMOTICON.sub(" ", text if addressed is None else addressed[1] + text[addressed.end() :])
    return bare, tuple(_split(bare))


def _content(keywords: Sequence[str]) -> set[str]:
    """The words of keywords that say more than courtesies do."""
    told = " ".join([word for word in keywords if word.casefold() not in COURTEOUS])
    return set(_split(told))


def _split(text: str) -> list[str]:
    """The words of a text, as the table has them: in small letters, without apostrophes."""
    small = text.casefold().replace("'", "")
    return (_ASCII_SPLIT if small.isascii() else _SPLIT).findall(small)


@remembered(8192, longest=64)
def _token(word: str) -> str:
    """A word as the table has it: one letter for many; laughter and the greetings without spaces as "lol"."""
    if _UNSPACED_PHRASES.fullmatch(word):
        return "lol"
    word = once(word)
    if _LAUGHTER.fullmatch(word):
        return "lol"
    if len(word) > 4 and word not in _WORDS:
        return _JUMBLED.get((word[0], "".join(sorted(word)), word[-1]), word)
    return word
