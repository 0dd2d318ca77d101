"""English.  Misspellings are listed where people make them often in chats."""

from __future__ import annotations

from collections.abc import Iterator

from memory.languages.language import Language, Times, lines, words

# -- words that are not searched for

# Leaving out the words that a question is made of (what, when, did) matters most.  Words that are also names or months
# (will, may, us) are searched: the ranking weighs them down where they are common.
STOP_WORDS = words("""
    a about am an and any are as at be been being but by can cannot could did do does for from had has have he her
    him his how i if in into is it its just me must my no not of on or our she should so some such than that the
    their them then there these they this those to too very was we were what when where which who whom whose why with
    would you your
    aint arent cant couldnt didnt doesnt dont hadnt hasnt havent im isnt ive lets mustnt shouldnt thats theyre theyve
    theyll wasnt werent weve whats wheres whos wont wouldnt youd youll youre youve
""")
FUNCTION_WORDS = words("""
    will shall might may us i'm mine yours hers ours theirs myself yourself himself herself itself ourselves themselves
    because cause cuz while though although until till unless since whether during between among within without
    above below over under up down out off away back through across around along against toward towards onto upon per
    via despite except plus versus vs both each every all either neither nor own same other others another else
    more most less least few fewer many much enough several none never ever only even also
    really quite rather pretty almost already still yet again once twice often always usually sometimes maybe
    perhaps probably possibly actually basically simply exactly especially definitely certainly surely obviously
    honestly literally anyway however therefore instead otherwise besides now here everywhere somewhere anywhere
    nowhere somehow kinda sorta gonna wanna gotta lemme dunno one ones two etc eg ie ago
    u ur r n y id ill didnt pls plz please ok okay yes yeah yep yup nope nah oh ah
    hi hello hey hiya bye goodbye thanks thank thx ty cheers welcome sorry lol lmao haha hahaha hehe hmm hm wow ugh
    btw fyi tbh imo idk well sure right alright nice cool great good better best bad worse worst fine perfect
    awesome amazing lovely glad happy able possible likely important interesting useful helpful quick quickly easy
    easily hard difficult simple simpler big bigger small smaller short shorter long longer new old different similar
    far certain various whole full real true wrong correct soon kindly first second third next last previous previously
    earlier recent recently lately later latest finally meanwhile like worth further apart together
""")
VAGUE_NOUNS = words("""
    thing things thingy stuff something anything everything nothing someone somebody anyone anybody everyone everybody
    nobody way ways lot lots bit bits kind kinds sort sorts part parts place places people person persons guy guys man
    question questions answer answers idea ideas point points fact reason reasons example examples case cases option
    options detail details info information conversation conversations discussion discussions suggestion suggestions
    recommendation recommendations advice tip tips couple bunch number rest matter matters difference topic word words
    message messages context update updates situation end list whatever whichever
""")
TIME_WORDS = words("""
    time times today tonight yesterday tomorrow moment moments seconds minute minutes hour hours day days
    daily week weeks weekly weekend weekends month months monthly year years yearly decade decades morning mornings
    afternoon afternoons evening evenings night nights noon midnight monday mondays tuesday tuesdays wednesday
    wednesdays thursday thursdays friday fridays saturday saturdays sunday sundays mon tue tues wed thu thur thurs fri
    january february march april june july august september october november december jan feb mar apr jun jul aug sept
    oct nov dec date past future present am pm
""")
_VERBS = """
    make want need get give come take put let look seem feel try help ask use find keep happen explain describe show
    mean remember recall remind mention discuss talk speak suggest recommend advise refer decide agree believe guess
    suppose wonder hope wish love hate enjoy prefer understand forget leave start stop begin continue become turn work
    run play call bring send add set change fix check read write move live stay learn buy pay hear meet follow provide
    include consider create allow plan answer reply repeat share compare choose pick handle solve finish list summarize
    summarise rewrite rephrase expand elaborate clarify sound mind care wait deal appear bother expect manage notice
    realize realise say tell know think draw sit stand hold translate
"""
_VERB_FORMS = """
    be been being is are was were am do does did doing done have has had having go goes went gone going see sees saw
    seen seeing said told knew known thought made got gotten gave given came took taken felt kept meant spoke spoken
    found understood forgot forgotten left began begun became ran brought sent wrote written bought paid heard met
    chose chosen stood held
"""
_NOUNS_OF_VERBS = words("meeting meetings setting settings feeling feelings checking living workers playing")


def _forms(verb: str) -> Iterator[str]:
    """The regular forms of a verb, and some that do not exist."""
    stem = verb[:-1] + "i" if verb.endswith("y") else verb.removesuffix("e")
    yield from (verb, verb + "s", verb + "ing", stem + "es", stem + "ed", stem + "ing")
    yield from (verb + verb[-1] + "ed", verb + verb[-1] + "ing")


GENERIC_VERBS = (words(_VERB_FORMS) | {form for verb in _VERBS.split() for form in _forms(verb)}) - _NOUNS_OF_VERBS

# -- small talk

SMALL_TALK = lines(r"""
    (?:hi+|hello+|he+y+|thanks(?: a lot)?|thank you|thx|bye|good (?:morning|night)),? (?-i:[A-Z][a-z]+)(?=\W*$|[,.!?])
    hi+|hiya+|he+y+[ao]?|hello+|hullo|howdy|greetings|yo|sup|wassup|gm|what'?s (?:up|good|new)|welcome back
    good to see you|good (?:mornin'?g?|afternoon|evening|day|night)
    (?:mornin'?g?|evening|afternoon)(?: all| everyone|(?=\W*$))|happy \w+day
    how (?:are|r) (?:you|u|ya|things)(?: doing| feeling)?
    how(?:'?s| is) (?:it|everything|life|things|your (?:day|week|weekend))|(?:how|what) about (?:you|yourself)
    and (?:you|u)|how have you been|did you sleep|(?:nice|good|great|pleased) to meet you|thanks?(?: ?(?:you|u|god))?
    thnaks|thx|thanx|tysm|ty|cheers|(?:much )?obliged|(?:i (?:really )?)?appreciated?(?: it| that)?|ok(?:ay|ey|ie|i)?
    kk?|al+right(?:y|ie)?|all right|right|(?:i )?got (?:it|you)|gotcha|i see|i understand|i (?:now )?get it|understood
    noted|roger|sure(?: thing)?|of course|absolutely|definitely|exactly|indeed|totally|certainly|fair(?: enough)?
    (?:that |it |this )?(?:makes (?:\w+ )?sense|(?:works?|worked|helps?|helped)(?: for me| now)?)|(?:that )?sounds|great
    good|nice|cool|perfect|awesome|amazing|wonderful|fantastic|brilliant|lovely|sweet|neat|excellent|superb|impressive
    wow+|whoa|omg|oh my(?: god)?|oh no|oh dear|well done|congrat\w*|bravo|yay|funny|hilarious|interesting|true|correct
    agreed|ye+s+|ye+ah*|ya|yep|yup|no+|nope|nah?|maybe|perhaps|probably|not (?:really|yet|now|bad|much|sure)|np|nvm
    never ?mind|no (?:problem|worries|need|thanks|idea|way|rush)|idk|dunno
    i (?:don'?t know|agree|guess|think so|hope so|love it|like it)|me too|same here|you too|likewise
    (?:my )?(?:bad|pleasure|apologies)|sorry|oops|excuse me|please do|go ahead|will do|done|ha(?:ha)+h?|a?(?:ha){2,}
    he(?:he)+|lo+l|lmao|rofl|hm+|mhm|ah+|aha|oh+|ugh|aww*|huh|phew|whatever|(?:very |most )?welcome|the best
    (?:i'?m )?(?:fine|okay|glad|bored|ready|off)|been good|can'?t complain|so so|(?:good)?bye+|cya|see (?:you|ya|u)|ttyl
    brb|gtg|(?:got|gotta|have) to go|gotta go|gotta run|talk (?:to you )?(?:soon|later|tomorrow)|take care|good ?night
    gn|sweet dreams|sleep well|have (?:a|an) (?:\w+ )?(?:one|day|night|evening|weekend|time|trip)|have fun
    that'?s (?:all|it|what i (?:thought|needed))|nothing else|just (?:checking in|saying hi|testing|kidding)|jk
    love (?:you|it|that)|happy (?:birthday|new year|holidays)|merry christmas|good luck|who are you
    are you (?:there|a bot|ok|human)|test(?:ing)?|ping|looking forward|can'?t wait|any ?time|too bad
    let'?s (?:go|do it|start)|let me try|take your time|yours?(?:elf)?
""")
PADDING = lines(r"""
    so+|oh+|ah+h*|well|and|but|that(?:'?s| is| was)?|it(?:'?s| is| was)?|this is|i'?m|i am|you(?:'?re| are)|ur|a|an
    what a|such a|very|really|too|just|all|been|pretty|quite|absolutely|please|how|then|now
""")
COURTESIES = words("""
    help appreciate patience worries worry slept sleep awake buddy mate friend bestie dude bro grateful kindness honey
    hug hugs kiss kisses delighted excited proud thrilled relief relieved luck lucky gosh goodness grief heck legend
    genius lifesaver champ chat smile laugh joke silly weird strange surprise curious tmrw words yourself lunch dinner
    learned figured fast funny hilarious heads reply support time chilling
""")

# -- references to the past

_TOLD = (
    "said|says|told|mentioned|discussed|talked|spoke|chatted|explained|suggested|recommended|advised|proposed|promised"
    "|agreed|decided|described|listed|showed|shared|sent|gave|wrote|asked|answered|covered|named|called|picked|chose"
    "|planned|drafted|went (?:over|through)|came up with|settled on|used|tried|worked on|looked at|brought up"
    "|pointed out|noted|outlined|made|built|found|created|designed|calculated|translated|gave up"
    "|sugested|mentionned|discused|metioned|recomended|reccomended"
)
_TELL = (
    "say|tell|mention|discuss|talk|speak|chat|explain|suggest|recommend|advise|propose|promise|agree|decide|describe"
    "|list|show|share|send|give|write|ask|answer|cover|name|pick|choose|plan|go over|come up with|settle|solve|fix"
    "|conclude|end up|do|use|make|call|bring up|leave off|learn"
)
_DONE = f"{_TOLD}|liked|loved|wanted|saw|watched|read|bought|ordered|visited|booked|did|had|were|was|met|asking|talking"
_BEFORE = "(?:earlier|before|previously|already|last time|a while (?:ago|back)|back then|once|in the past|above)"
_WE = "(?:i|we|you|u)"
_HAD = r"(?:'ve|ve|'d| have| had)?(?: (?:already|just|previously|once|originally|also|first|even|never|ever|all))*"
_WHAT = "(?:what|where|who|when|which|how|why)(?:'?s)?"
_NOT_WHAT_TO_DO = r"(?! (?:do|can|should|would|could|to|must|might|may) (?:i|we|to)\b)"
_TALKS = (
    "(?:chat|conversation|discussion|talk|session|message|thread|question|answer|suggestion|recommendation|plan|note"
    "|example|idea|list)s?|repl(?:y|ies)|advice"
)
REFERENCES = lines(rf"""
    (?:{_WHAT} (?:else )?)?(?:did|have|had|didn'?t) {_WE}{_HAD} (?:{_TELL}|{_TOLD})
    (?:as|like|than|what|everything|anything|all|which|that|where|how|when|because|since) {_WE}{_HAD} (?:{_TOLD})
    (?:the|that|those|this|which|what|any|some|one|every)(?: \w+){{1,4}},? (?:that |which )?{_WE}{_HAD} (?:{_DONE})
    (?:i|we){_HAD} (?:mentioned|metioned|discussed|talked about|spoke about|went over|covered|brought up)
    i{_HAD} (?:told|asked|showed|sent|gave) (?:you|u)|already (?:{_TOLD})
    {_WE}{_HAD} (?:{_TOLD})(?: \w+){{0,4}} {_BEFORE}|{_BEFORE},? {_WE}{_HAD} (?:{_TOLD}|were|was)
    {_WE} (?:were|was) (?:just |already )?(?:telling|talking|discussing|saying|planning|writing|working on|looking at)
    (?:you|u) (?:still |even |happen to )*(?:remember|remeber|rember|recall)
    (?:i|we) (?:(?:don'?t|can'?t|cannot|do not) )?(?:remember|recall|forgot|forget) (?:{_WHAT}|if|the|that|you)
    remember (?:when|how|what|the|my|our|where|who|last|i told|we|that)
    remind me (?:again )?(?!to\b|at\b|in\b|every|on\b|tomorrow|when i\b)\w+|(?:refresh|jog) (?:my|your) memory
    (?:you|u)(?:'ve)? (?:forgot|forgotten|already know)|did you forget
    (?:last|previous|prior|earlier|past|other|first) (?:few )?(?:{_TALKS})|(?:our|your) (?:\w+ )?(?:{_TALKS})
    (?:from|in|see|as) (?:the )?(?:above|before|earlier)|(?:as|like|than|from|since|about|the) last time
    last time,? {_WE}|last we (?:spoke|talked)|last time(?=\W*$)
    (?:same (?:\w+ )?as|like|as) (?:before|last time|always|usual)
    as (?:discussed|mentioned|agreed|promised|said|planned|noted|requested|suggested)
    (?:go|get|come|going|getting|coming) back to (?:the|our|what|that|where|when|my (?:question|problem|idea))
    pick(?:ing|ed)? (?:\w+ )?up (?:again |where|from|our)|(?:left|leave|stopped|stop) off
    where did we (?:stop|leave|end)|where (?:were|was) (?:we|i)
    (?:continue|resume|continuing) (?:with|from|our|the|where|my)|revisit
    (?:based on|given|considering|according to) (?:everything |all )?(?:what|that|our)(?: \w+){{0,2}} {_WE} know
    (?:know|knew|learned|remember|recall|noted|stored) (?:about|of) (?:me|my|us|our)|changed my mind about
    follow(?:ing)?[ -]?up (?:on|to)|refer(?:r?ing|s)? (?:back )?to|(?:earlier|previously),? (?:in|you|i|we)|back when
    back then|(?:what|who|which|where|when|how)(?:'?s)? (?:was|were|is|are|did)\b[^.?!]{{0,60}} again(?=\W*$)
    (?:send|show|give|tell|explain|share|repeat)(?: \w+){{1,5}} again|once more
""")
POINTERS = lines(rf"""
    (?:you|u){_HAD} (?:{_TOLD}|taught|meant|thought)
    {_WHAT}{_NOT_WHAT_TO_DO}[^.?!]{{0,40}}? (?:am|was|did|do|have|had|were|are) (?:i|we)
    (?:who|how|where|what) (?:do|am|did) i(?! (?:do|need|have|get|go|make|use|say|fix|set|add|start|know|write|find)\b)
    ^(?:did|do|have|had|was|am) i(?! (?:need|have to|really))
""")
PEOPLE = lines(r"""
    he|she|him|her|his|mother|mom|mum|father|dad|sister|brother|son|daughter|wife|husband|partner|girlfriend|boyfriend
    friend|aunt|uncle|cousin|grand\w+|boss|manager|colleague|neighbou?r|teacher|doctor|dentist|landlord|roommate|guy
    woman|man|girl|boy|baby|kid|child|dog|cat|player|president|author|singer|actor|actress|king|queen|mr|mrs|ms|dr
    (?-i:[A-Z][a-z]+) (?:is|was|has|had|said|says|[a-z]{2,}ed)
""")
ASKS = (
    r"^\W*(?:(?:please|pls|so|and|but|ok|okay|hey|hi|now|then|well)\W+)*"
    r"(?:what|who|whom|whose|when|where|which|why|how|show|tell|give|list|find|remind|look up|search|repeat|explain"
    r"|describe|summari[sz]e|compare|name|let me (?:know|see)|do|does|did|is|are|was|were|am|can|could|will|would"
    r"|should|have|has)"
)

# -- times

_MONTH_NAMES = "january february march april may june july august september october november december"
_WEEKDAY_NAMES = "monday tuesday wednesday thursday friday saturday sunday"
_NUMBER_NAMES = "one two three four five six seven eight nine ten eleven twelve"
_MONTHS = {name: at for at, name in enumerate(_MONTH_NAMES.split(), 1)}
_MONTHS |= {name[:3]: at for name, at in _MONTHS.items()} | {"sept": 9}
_WEEKDAYS = {name: at for at, name in enumerate(_WEEKDAY_NAMES.split())}
_WEEKDAYS |= {name[:3]: at for name, at in _WEEKDAYS.items()} | {"tues": 1, "thur": 3, "thurs": 3}
_UNITS = ("minute", "hour", "day", "week", "weekend", "month", "quarter", "year")
_COUNTS: dict[str, tuple[int, int]] = {name: (at, at) for at, name in enumerate(_NUMBER_NAMES.split(), 1)}
_COUNTS |= {"a": (1, 1), "an": (1, 1), "a couple of": (1, 3), "couple of": (1, 3), "a few": (2, 6), "few": (2, 6)}
_COUNTS |= {"several": (3, 8)}
_IN = "(?:in|during|throughout|around|over) (?:the )?"
_PART = "(?:(?:at |in )?(?:the )?<part>(?: of| in|-)? ?)"
_TH = "(?:st|nd|rd|th)?"
_YEAR = "(?:(?:, ?| )(?:of |in )?<year>)"
_A_QUANTITY = "(?! (?:words?|tokens?|steps?|lines?|times|bits?|bytes?|people|miles?|hours?|days?|dollars?|euros?))"

TIMES = Times(
    phrases=(
        r"<named>(?! of\b)",
        r"(?P<past>(?:in |over )?(?:the |these )?(?:last|past)) <count> <unit>s?(?! of\b)",
        r"(?P<past>the last|(?:(?:in|over) )?(?:the )?past) (?P<unit>hour|week|month|quarter|year)(?! of\b)",
        r"<count> <unit>s? (?P<ago>ago|back)",
        r"(?:in )?<year>,? (?:in )?<month>",
        r"(?:the )?<unit> <shift>",
        r"<shift> (?P<unit>week|weekend|month|quarter|year)(?! of\b)",
        rf"(?:on )?(?:the )?(?:<weekday>,? )?<day>{_TH} (?:of )?<month>\.?{_YEAR}?",
        rf"(?:on )?(?:<weekday>,? )?<month>\.? (?:the )?<day>{_TH}(?![0-9:]){_A_QUANTITY}{_YEAR}?",
        rf"(?:{_IN})?{_PART}?<month>\.?{_YEAR}",
        rf"{_PART}<month>",
        r"(?:in )?<shift> <month>",
        rf"{_IN}{_PART}?<month>(?!'s)",
        r"in (?P<month>may|march)(?=\W*$|[^\w\s]| (?:i|we|you|she|he|they|about|when)\b)",
        r"(?:on )?<shift> <weekday>",
        r"on <weekday>",
        rf"{_IN}<year>(?![.,:/-]?[0-9]){_A_QUANTITY}",
    ),
    named={
        "today": ("day", 0),
        "yesterday": ("day", -1),
        "the day before yesterday": ("day", -2),
        "tonight": ("night", 0),
        "last night": ("night", -1),
        "this morning": ("morning", 0),
        "this afternoon": ("afternoon", 0),
        "over the weekend": ("weekend", -1),
    },
    shifts={"last": -1, "this": 0, "this past": -1, "past": -1, "before last": -2},
    years={"last year": -1, "this year": 0},
    numbers=_COUNTS,
    units={unit: unit for unit in _UNITS},
    months=_MONTHS,
    parts={
        **dict.fromkeys(("early", "beginning", "start"), (1, 10)),
        **dict.fromkeys(("mid", "middle"), (11, 20)),
        **dict.fromkeys(("late", "end"), (21, 31)),
        "first half": (1, 15),
        "second half": (16, 31),
        "first week": (1, 7),
        "second week": (8, 14),
        "third week": (15, 21),
        "fourth week": (22, 28),
        "last week": (24, 31),
    },
    weekdays=_WEEKDAYS,
    capitalised=words("may march mar jan mon wed sat sun"),
    never_after="my|his|her|our|their|your|its|whose|every|each|next|coming|upcoming|later|any|most|per"
    "|since|after|before|until|till|by",
    verbs=r"will|won't|shall|'ll|gonna|going to|let's|let us|need|have to|has to|must|want to|remind|plan to|planning"
    r"|should we|can we|could we|book|schedule|tomorrow|next|deadline|due|(?:is|are|be)(?=\W*\Z)"
    r"|(?P<past>did|was|were|had|said|told|went|got|made|met|saw|wrote|came|took|gave|thought|bought|sent|found|left"
    r"|spoke|i've|we've|you've|(?!(?:need|indeed|feed|speed)\b)[a-z]{2,20}ed)",
)

# -- what facts are checked for

_TEENS = "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_MONTH = "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
_MONTH += "|nov(?:ember)?|dec(?:ember)?)"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"

LANGUAGE = Language(
    "en",
    stop_words=STOP_WORDS,
    idle_words=FUNCTION_WORDS | VAGUE_NOUNS,
    time_words=TIME_WORDS,
    generic_verbs=GENERIC_VERBS,
    determiners=words("my your his her our their its a an the this these those some"),
    small_talk=SMALL_TALK,
    padding=PADDING,
    courtesies=COURTESIES,
    references=REFERENCES,
    pointers=POINTERS,
    persons="(?:he|she)(?:'?s)?|him|hers?|his",
    people=PEOPLE,
    things=r"they|them|their|it|that one|those|these|this|that(?! (?:i|we|you|he|she|they|it|the|my|an?)\b)",
    asks=ASKS,
    cardinals={name: at for at, name in enumerate((_NUMBER_NAMES + " " + _TEENS).split(), 1) if at > 1}
    | {name: 10 * at for at, name in enumerate(_TENS.split(), 2)},
    numbers={name: at for at, name in enumerate(_ORDINALS.split(), 3)}
    | {"zero": 0, "nil": 0, "couple": 2, "pair": 2, "both": 2, "twice": 2, "twins": 2, "second": 2, "triple": 3}
    | {"quarter": 4, "dozen": 12, "fortnight": 14, "half": 50, "hundred": 100, "thousand": 1000, "million": 10**6},
    multipliers={"k": 1000, "thousand": 1000, "m": 10**6, "million": 10**6},
    one="an?|one|single|once|first|only|sole|just|my",
    negations=r"not|no|never|none|nobody|nothing|neither|nor|without|cannot|\w+n't",
    negatives=lines(r"""
        nope|nah|hat(?:e|es|ed|ing)|loath\w*|avoid\w*|quit\w*|stop\w*|g[ai]ve\w* up|lack\w*|except\w*|refus\w*|declin\w*
        dislik\w*|detest\w*|allerg\w*|intoleran\w*|\w*free|forg[eo]t\w*|los[te]\w*|cancel\w*|fail\w*|unable|rarely
        hardly|barely|seldom|few|little|too|only|instead|rather|vegan\w*|vegetarian\w*|teetotal\w*|sober|against
        exclud\w*|rul(?:e|es|ed|ing) out|skip\w*|leav\w*|left|miss\w*|ban\w*|drop\w*|remov\w*|retir\w*|end\w*|over
        broke\w*|former\w*|used to|ex|less|beyond|out|away|before|until|yet|still|wrong|bad|worst|un\w+|dis\w+|im\w+
        in\w+able|\w+less|at most|max\w*|limit\w*|under|below|deny|denied|reject\w*
    """),
    dates=rf"\d{{4}}-\d\d(?:-\d\d)?|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}|{_DAY} (?:of )?{_MONTH}(?:,? \d{{4}})?"
    rf"|{_MONTH}(?: {_DAY}\b)?(?:,? \d{{4}})?|(?:19|20)\d\d|(?:mon|tues|wednes|thurs|fri|satur|sun)day",
    relative_times="today|tonight|tomorrow|yesterday|now|ago|last|next|this|coming|past|since|recently|soon|weekend"
    "|decade|morning|evening|(?:mon|tues|wednes|thurs|fri|satur|sun)day|spring|summer|autumn|winter"
    "|(?:day|week|month|year)s?",
    times=TIMES,
)
