"""The table of first-person statements in English: see `personal`.

Rules are grouped by how the clause begins, and are tried in order; a rule's pattern reads what follows the subject
("I'm", "I have", "I", "my").  `text` restates with the clause's own words; `{v}` is the value, `{k}` a word of the
pattern, `{key}` (in attributes) the value's stems.  An empty attribute means that nothing said later corrects it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_I = re.IGNORECASE
_V = r"(?P<v>.+)"
_DIETS = r"vegan|vegetarian|pescatarian|kosher|halal|teetotal|keto"
_CONDITIONS = (
    r"coeliac|celiac|diabetic|asthmatic|pregnant|deaf|blind|dyslexic|colou?r[- ]?blind|autistic|epileptic|hard of"
    r" hearing|(?:lactose|gluten|fructose|histamine)[- ]intolerant|left[- ]handed|sober|anemic|anaemic|disabled"
)
_ILLNESSES = (
    r"(?:type (?:1|2|one|two) )?diabetes|asthma|adhd|epilepsy|arthritis|(?:high |low )?blood pressure|cancer|migraines?"
    r"|insomnia|anxiety|depression|c(?:o)?eliac(?: disease)?|autism|ibs|eczema|a pacemaker"
    r"|a (?:bad|weak|heart|back|knee) (?:back|knee|heart|condition)"
)
_SOLE_KIN = (
    r"wife|husband|spouse|partner|fiancée?|girlfriend|boyfriend|mother|father|mom|mum|dad|boss|manager|landlord"
    r"|therapist|doctor|dentist|roommate|flatmate|ex"
)
_MANY_KIN = (
    r"son|daughter|kid|child|baby|sister|brother|grandmother|grandfather|grandma|grandpa|granny|aunt|uncle|cousin"
    r"|nephew|niece|friend|neighbou?r|colleague|coworker|teammate|coach|teacher|mentor|dog|cat|puppy|kitten|pet|horse"
    r"|parrot|rabbit|hamster|turtle|snake|fish|bird"
)
_KIN = (
    rf"(?:(?:older|younger|little|big|best|twin|ex|eldest|oldest|youngest|late|step)[- ]?)?(?:{_SOLE_KIN}|{_MANY_KIN})"
)
_KINDRED = (
    r"wife|husband|(?:twin|step)?(?:son|daughter|sister|brother|sibling|kid|boy|girl|twin|cousin|dog|cat"
    r"|pet|horse|parrot|rabbit|hamster|turtle|snake|bird|roommate|flatmate|guinea pig)s?|child|children"
    r"|puppy|puppies|kitten|kittens|boyfriend|girlfriend|partner|fianc\w+|family"
)
_COUNT = r"an?|one|two|three|four|five|six|seven|eight|nine|ten|\d{1,2}|twin|several|some|no"
_POSSESSIONS = (
    r"house|flat|apartment|farm|car|van|truck|motor(?:bike|cycle)|bike|boat|garden|degree|phd|diploma|licen[cs]e|piano"
    r"|guitar|violin|laptop|macbook|iphone|collection|visa|passport|company|business|startup|shop|blog|podcast"
    r"|channel|website"
)
_TIME = (
    r"(?=.*\b(?:yesterday|today|tonight|tomorrow|last|next|this (?:morning|afternoon|evening|week|weekend|month|year"
    r"|summer|winter|spring|autumn|fall|coming)|ago|recently|just|monday|tuesday|wednesday|thursday|friday|saturday"
    r"|sunday|january|february|march|april|in may|june|july|august|september|october|november|december|the other day"
    r"|weekend|soon|\d{4}|on the \d+|\d+(?:st|nd|rd|th))\b)"
)
_FUTURE = (
    r"(?=.*\b(?:tonight|tomorrow|next|this (?:afternoon|evening|week|weekend|month|year|summer|winter|spring|autumn"
    r"|fall|coming)|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|in may|june"
    r"|july|august|september|october|november|december|soon|20\d\d|on the \d+|\d+(?:st|nd|rd|th)|in (?:a|an|one|two"
    r"|three|\d+) (?:days?|weeks?|months?|years?))\b)"
)
_JOBS = (
    r"(?:nurse|doctor|teacher|engineer|developer|programmer|designer|lawyer|accountant|architect|chef|cook|baker|pilot"
    r"|driver|electrician|plumber|carpenter|mechanic|writer|journalist|editor|photographer|musician|artist|actor|dancer"
    r"|professor|researcher|scientist|biologist|chemist|physicist|analyst|consultant|manager|director|c[etf]o|founder"
    r"|entrepreneur|student|intern|postdoc|librarian|translator|therapist|psychologist|dentist|vet|pharmacist|surgeon"
    r"|firefighter|(?:police|social) \w+|soldier|farmer|gardener|barista|wait(?:er|ress)|bartender|assistant|banker"
    r"|economist|coach|trainer|freelancer|contractor|hairdresser|sysadmin|technician|cleaner)"
)
_LABELS = (
    r"e-?mail(?: address)?|(?:phone|mobile)(?: number)?|(?:home |work )?address|time ?zone|city|country|home ?town"
    r"|nationality|(?:native|first|mother) (?:language|tongue)|height|weight|blood type|(?:shoe )?size|user ?name"
    r"|handle"
    r"|pronouns|(?:middle|last|family|maiden)[- ]?name|surname|nickname|goal|dream|hobby|hobbies|passion|role"
    r"|(?:job )?title"
    r"|company|employer|team|major|degree|school|university|college|religion|insurance|salary|income|car|laptop|bike"
    r"|field|profession|occupation|diet|anniversary|wedding(?: day| date)?|flight(?: number)?|hotel|project"
    r"|wi-?fi (?:name|password)|(?:tech )?stack|operating system|os|editor|ide"
)
# What a plan or a project has one of: told with a name or a figure, since "the hotel is nice" says little of it.
_THINGS = (
    r"(?:tech )?stack|database|db|back ?end|front ?end|framework|(?:programming )?language|hosting|host|server|cloud"
    r"|repo(?:sitory)?|domain|client|customer|venue|hotel|airbnb|flight|train|(?:launch|release|start|end|due|wedding"
    r"|move)(?: date)?|meeting|(?:wi-?fi )?password|version|address|phone number|team size"
)
_DATE = (
    r"(?:the |next |this )?(?:\d{1,2}(?:st|nd|rd|th)? (?:of )?)?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january"
    r"|february|march|april|may|june|july|august|september|october|november|december|tomorrow|tonight"
    r"|\d{1,2}(?:[:.]\d\d| ?[ap]m|st|nd|rd|th))\b"
)
_GO = r"go|visit|see|travel|fly|drive|spend|explore|tour|move|build|write|launch|start|organi[sz]e|learn"
CASUAL_OK = frozenset({"name", "lives-in", "from"})


@dataclass(frozen=True)
class Rule:
    """One row: what it reads, how it restates it, and what kind of value it holds (see `personal_values.value_of`)."""

    pattern: re.Pattern[str]
    text: str
    category: str
    importance: int
    attribute: str
    value: str
    ended: bool


def _rule(pattern: str, text: str, kind: str, attribute: str = "", value: str = "rest", ended: bool = False) -> Rule:
    category, _, importance = kind.partition(" ")
    compiled = re.compile(pattern.replace("V", _V), _I)
    return Rule(compiled, text, category, int(importance), attribute, value, ended)


_AM = (
    _rule(r"(?:based|living|located|residing) (?:in|out of|near) V", "Lives in {v}", "identity 4", "lives-in", "place"),
    _rule(r"from V", "From {v}", "identity 4", "from", "place"),
    _rule(r"(?:called|named) V", "Name: {v}", "identity 5", "name", "name"),
    _rule(
        r"(?:not|no longer)(?: really)? allergic to V",
        "Not allergic to {v}", "identity 4", "allergy:{key}", "list", True,
    ),
    _rule(r"(?:\w+ly )?allergic to V", "Allergic to {v}", "identity 5", "allergy:{key}", "list"),
    _rule(rf"(?P<n>no longer|not)(?: an?)? (?P<k>{_DIETS})\b", "{n} {k}", "identity 4", "diet:{k}", "rest", True),
    _rule(rf"(?:an? |strictly |mostly )*(?P<k>{_DIETS})\b", "{k}", "identity 4", "diet:{k}"),
    _rule(rf"no longer (?P<k>{_CONDITIONS})\b", "No longer {k}", "identity 4", "health:{k}", "rest", True),
    _rule(rf"(?:an? )?(?P<k>{_CONDITIONS})\b(?!\s+(?:to|by)\b)", "{k}", "identity 5", "health:{k}"),
    _rule(r"(?P<v>\d{1,3})(?=\s*(?:$|,|-|and\b|years?\b|yo\b|y/o\b))", "{v} years old", "identity 4", "age"),
    _rule(r"(?P<k>married|engaged) to V", "{k} to {v}", "relationship 4", "marital", "short"),
    _rule(
        r"(?P<k>married|engaged|divorced|single|widowed|separated|retired|unemployed)\b",
        "{k}", "relationship 3", "marital",
    ),
    _rule(r"(?:working|employed) as V", "Works as {v}", "work 3", "job", "one"),
    _rule(r"(?:working|employed) (?P<k>at|for|with|by) V", "Works {k} {v}", "work 3", "employer", "one"),
    _rule(r"working in V", "Works in {v}", "work 3", "", "one"),
    _rule(r"working on V", "Working on {v}", "work 2", "", "short"),
    _rule(r"(?P<k>studying|majoring in|learning|practi[cs]ing|teaching) V", "{k} {v}", "work 3", "{k}:{key}", "short"),
    _rule(
        r"not(?: really| much)?(?: that)? (?:into|fond of|keen on|a (?:\w+ )?fan of) V",
        "Dislikes {v}", "preference 3", "taste:{key}", "list",
    ),
    _rule(
        r"(?:into|fond of|keen on|passionate about|crazy about|obsessed with|an? (?:\w+ )?(?:fan|lover) of) V",
        "Likes {v}", "preference 3", "taste:{key}", "list",
    ),
    _rule(
        r"(?P<k>planning to|planning on|planning|going to|hoping to|preparing for|preparing to|training for|saving up"
        r" for|saving for|thinking of|thinking about|looking for|considering)\s+(?!(?:be honest|say|tell|ask|sleep|bed"
        r"|go\b|keep|try|do it)\b)V",
        "{k} {v}", "plan 2",
    ),
    _rule(
        _FUTURE + r"(?P<k>flying|travell?ing|moving|heading|driving|visiting|meeting|starting|getting|leaving|hosting"
        r"|having|running|taking|seeing|attending|throwing|celebrating|presenting|joining|launching|competing|playing"
        r"|performing|returning|going) V",
        "{k} {v}", "plan 2",
    ),
    _rule(
        r"(?P<k>building|developing|writing|designing|creating|making|organi[sz]ing|renovating|running|hosting"
        r"|launching|starting|migrating|redesigning|working on) (?P<v>(?:an?|the|our|my|some) .+)",
        "{k} {v}", "plan 2", "", "rest",
    ),
    _rule(rf"(?:an?|the) (?P<v>(?:[\w'-]+ ){{0,3}}{_JOBS}\b.*)", "Works as {v}", "work 4", "job", "one"),
    _rule(
        r"(?P<k>an? )(?!(?:bit|little|lot|fan|tad|couple|few|firm|huge|big|good|bad|mess|wreck|great|total|real|true"
        r"|sucker|part|day|week|month|year|person who)\b)(?P<v>[\w'-]+(?: [\w'-]+){0,2})$",
        "Is {k}{v}", "identity 3", "", "short",
    ),
    _rule(
        r"(?P<v>(?-i:[A-Z])\w+(?:ish|ese|ean|[^lr]ian|rian|kan|ican)|Dutch|French|German|Greek|Swiss|Thai|Czech|Israeli"
        r"|Iraqi|Pakistani|Filipino|Icelandic|African)(?=$|,| and| but)",
        "Nationality: {v}", "identity 4", "my:nationality", "one",
    ),
    _rule(
        r"(?P<v>(?-i:[^\W\d_a-z])[\w'’-]+(?: (?-i:[^\W\d_a-z])[\w'’-]+){0,2})(?=$|,| from| and|\s*\()",
        "Name: {v}", "identity 5", "name", "name",
    ),
)  # fmt: skip

_HAVE = (
    _rule(r"(?:an? )?(?:\w+ )?allerg(?:y|ies) to V", "Allergic to {v}", "identity 5", "allergy:{key}", "list"),
    _rule(
        r"(?:an? )?(?:severe |bad |mild |serious |terrible |strong )?(?P<v>(?!(?:severe|bad|an?|this|some|no"
        r"|terrible)\b)[a-z]+(?: [a-z]+)?) allerg(?:y|ies)\b",
        "Allergic to {v}", "identity 5", "allergy:{key}", "list",
    ),
    _rule(rf"(?P<v>{_ILLNESSES})\b", "Has {v}", "identity 5", "health:{key}"),
    _rule(r"(?:a )?(?:total |max(?:imum)? |overall )?budget of V", "Budget: {v}", "constraint 4", "budget", "one"),
    _rule(rf"(?P<v>(?:{_COUNT})(?: [\w-]+){{0,2}}? (?:{_KINDRED})\b.*)", "Has {v}", "relationship 3", "", "rest"),
    _rule(
        _TIME + r"(?P<v>(?:an? |my |another )(?:[\w'-]+ ){0,2}(?:appointment|meeting|interview|flight|exam|surgery"
        r"|concert|date|trip|reservation"
        r"|call|test|game|match|race|wedding|conference|presentation|show|recital|competition|check-?up)\b.*)",
        "Has {v}", "plan 3",
    ),
    _rule(
        rf"(?P<v>(?:{_COUNT}|my own)(?: [\w'-]+){{0,3}}? (?:{_POSSESSIONS})s?\b.*)",
        "Has {v}", "identity 3", "", "short",
    ),
)  # fmt: skip

_CURRENT = r"(?!.*\b(?:years ago|when i was|back then|as a (?:kid|child)|used to)\b)"
_HABITS = (
    ("speak", "Speaks", "identity 4"), ("play", "Plays", "preference 3"), ("teach", "Teaches", "work 3"),
    ("study", "Studies", "work 3"), ("run", "Runs", "work 3"), ("own", "Owns", "identity 3"),
    ("manage", "Manages", "work 3"),
    ("lead", "Leads", "work 3"), ("coach", "Coaches", "work 3"), ("volunteer", "Volunteers", "work 3"),
    ("collect", "Collects", "preference 3"), ("wear", "Wears", "identity 3"), ("drive", "Drives", "identity 3"),
    ("eat", "Eats", "preference 3"), ("drink", "Drinks", "preference 3"), ("practice", "Practices", "preference 3"),
    ("practise", "Practises", "preference 3"), ("use", "Uses", "preference 3"), ("commute", "Commutes", "identity 3"),
    ("support", "Supports", "preference 3"), ("identify as", "Identifies as", "identity 4"),
)  # fmt: skip
_DO = (
    _rule(r"no longer live in V", "No longer lives in {v}", "identity 3", "lives-in", "place", True),
    _rule(
        r"(?:don't|do not) live in V(?=\s+any ?(?:more|longer)\b)",
        "No longer lives in {v}", "identity 3", "lives-in", "place", True,
    ),
    _rule(r"(?:don't|do not) live in V", "Doesn't live in {v}", "identity 3", "lives-in", "place", True),
    _rule(r"live in V", "Lives in {v}", "identity 4", "lives-in", "place"),
    _rule(
        r"live (?P<v>(?:in an?|in the|on|near|with|alone|by|at|above|next to)\b.*)",
        "Lives {v}", "identity 3", "", "short",
    ),
    _rule(r"used to V", "Used to {v}", "identity 2", "", "short"),
    _rule(r"lived in V", "Lived in {v}", "identity 2", "", "place"),
    _rule(_CURRENT + r"(?:just |recently |finally )*(?:moved|relocated)(?: back| over| away| out| here)?(?: from [\w"
        r" ]{2,30})? to V", "Moved to {v}", "identity 4", "lives-in", "place"),
    _rule(r"(?:moved|relocated)(?: here)? from V", "Moved from {v}", "identity 3", "from", "place"),
    _rule(r"grew up (?P<k>in|on|near) V", "Grew up {k} {v}", "identity 3", "grew-up", "short"),
    _rule(
        r"was born (?:on|in) (?P<v>(?:\d{1,2}(?:st|nd|rd|th)?(?: of)? )?(?:january|february|march|april|may"
        r"|june|july|august|september|october|november|december)\b.{0,20})",
        "Birthday: {v}", "identity 4", "birthday", "rest",
    ),
    _rule(r"was born in V", "Born in {v}", "identity 4", "born", "one"),
    _rule(r"come from V", "From {v}", "identity 4", "from", "place"),
    _rule(r"turned (?P<v>\d{1,3})\b", "{v} years old", "identity 4", "age"),
    _rule(
        r"(?:no longer|stopped) work(?:ing)? (?P<k>at|for|with) V",
        "No longer works {k} {v}", "work 3", "employer", "one", True,
    ),
    _rule(r"(?:don't|do not) work (?P<k>at|for|with) V", "Doesn't work {k} {v}", "work 3", "employer", "one", True),
    _rule(
        r"(?:quit|left|lost|resigned from|got fired from|got laid off from) (?P<k>my job|my position|work)\b",
        "Left {k}", "work 3", "employer", "rest", True,
    ),
    _rule(r"work as V", "Works as {v}", "work 3", "job", "one"),
    _rule(r"work (?P<k>at|for|with) V", "Works {k} {v}", "work 3", "employer", "one"),
    _rule(
        r"work (?P<v>(?:in|from|remotely|nights|night shifts?|part[- ]time|full[- ]time)\b.*)",
        "Works {v}", "work 3", "", "one",
    ),
    _rule(
        r"(?:got|landed|started|found|took|accepted) an? (?:new )?(?:job|position|role) (?P<k>at|with) V",
        "Works {k} {v}", "work 3", "employer", "one",
    ),
    _rule(r"(?:started|began) (?:working|work) (?P<k>at|for|with) V", "Works {k} {v}", "work 3", "employer", "one"),
    _rule(
        r"(?:got|landed|started|found|took|accepted) an? (?:new )?(?:job|position|role) as V",
        "Works as {v}", "work 3", "job", "one",
    ),
    _rule(r"(?:am )?retired\b", "Retired", "work 3", "job"),
    _rule(
        r"no longer (?:like|love|enjoy|prefer) V",
        "No longer likes {v}", "preference 3", "taste:{key}", "list", True,
    ),
    _rule(
        r"(?:don't|do not)(?: really)? (?:like|love|enjoy|prefer) (?P<v>.+?) (?:any ?more|any longer)\b",
        "No longer likes {v}", "preference 3", "taste:{key}", "list", True,
    ),
    _rule(
        r"(?:hate|dislike|detest|despise|loathe|can't stand|cannot stand|can't bear|(?:don't|do not)(?:"
        r" really)?(?: much)? (?:like|enjoy|care for)) (?!to (?:say|admit|see)\b)V",
        "Dislikes {v}", "preference 3", "taste:{key}", "list",
    ),
    _rule(
        r"love (?!you\b|to (?:hear|see|know)\b|the |that |how )V",
        "Loves {v}", "preference 3", "taste:{key}", "list",
    ),
    _rule(
        r"(?:like|enjoy|adore) (?!the (?:idea|sound|look|way)\b|to think\b|you\b|how )V",
        "Likes {v}", "preference 3", "taste:{key}", "list",
    ),
    _rule(r"(?:would )?(?:much )?prefer V", "Prefers {v}", "preference 3", "taste:{key}", "list"),
    _rule(
        r"no longer (?P<k>eat|drink|use|play|drive|speak|need) V",
        "No longer {k}s {v}", "identity 4", "{k}:{key}", "list", True,
    ),
    _rule(
        r"(?:don't|do not) (?P<k>eat|drink|use|play|drive) (?P<v>.+?) (?:any ?more|any longer)\b",
        "No longer {k}s {v}", "identity 4", "{k}:{key}", "list", True,
    ),
    _rule(
        r"(?:stopped|quit|gave up|given up) (?P<k>eat|drink)ing V",
        "No longer {k}s {v}", "identity 4", "{k}:{key}", "list", True,
    ),
    _rule(
        r"(?:don't|do not|never|can't|cannot) (?P<k>eat|drink) (?!(?:it|that|much|a lot|too)\b)V",
        "Doesn't {k} {v}", "identity 4", "{k}:{key}", "list", True,
    ),
    _rule(r"(?:don't|do not|never|no longer) (?P<k>smoke|drink|drive|cook|swim|eat out|gamble)(?=$|\s+(?:any"
        r"|at)\b)", "Doesn't {k}", "identity 4", "{k}", "rest", True),
    _rule(r"(?:quit|stopped|gave up) (?P<k>smoking|drinking|gambling|driving)\b", "Quit {k}", "identity 4", "{k}"),
    _rule(r"suffer from V", "Suffers from {v}", "identity 5", "health:{key}", "list"),
    _rule(r"can spend (?:about |around |only )*(?P<v>(?:at most|up to|no more than|at the most|max(?:imum)?)?"
        r" ?.*\d.*)", "Budget: {v}", "constraint 4", "budget", "one"),
    _rule(rf"(?:would like|want|hope) to (?P<k>{_GO}) V", "Wants to {k} {v}", "plan 2"),
    _rule(_FUTURE + r"(?P<v>(?:land|arrive|leave|depart|fly|travel|return|head|drive|check (?:in|out)|get married"
        r"|start|begin|launch|ship|go live|meet|move|present)\b.{3,})", "{v}", "plan 2"),
    _rule(r"(?:plan|intend|aim) to V", "Plans to {v}", "plan 2"),
    _rule(r"(?P<k>(?:decided (?:to|on|against)|agreed to)) V", "{k} {v}", "plan 3"),
    *(
        _rule(
            rf"{verb} (?!(?:a (?:big|huge|key) (?:role|part))\b)V", f"{third} {{v}}", kind, f"{verb}:{{key}}", "list"
        )
        for verb, third, kind in _HABITS
    ),
    _rule(_TIME + r"(?P<v>(?:went|got|bought|sold|met|had|made|took|saw|won|lost|ran|began|flew|drove|gave|found"
        r"|built|broke|hurt|wrote|read|led|held|hung|came|spent|caught|did|was (?:at|in)|(?!want|need|hop"
        r"|think|thought)\w{2,}[^e\W]ed)\b.{3,})", "{v}", "event 2"),
    _rule(
        r"(?P<v>(?:just |recently |finally )*(?:adopted|bought|sold|married|graduated|signed|won|broke"
        r"|launched|published|enrolled|joined|passed|failed|finished|completed|opened|started)\b.{3,})",
        "{v}", "event 2",
    ),
)  # fmt: skip

_MY = (
    _rule(
        r"(?:full |first |real )?name(?: is|'s|:)(?: actually| really)? V",
        "Name: {v}", "identity 5", "name", "name",
    ),
    _rule(r"(?:call me|calls? me|know me as) V", "Name: {v}", "identity 5", "name", "name"),
    _rule(r"birthday(?: is|'s|:)(?: on| in)? V", "Birthday: {v}", "identity 4", "birthday", "one"),
    _rule(r"age(?: is|:) (?P<v>\d{1,3})", "{v} years old", "identity 4", "age"),
    _rule(r"(?P<f>favou?rite|fave|preferred|go-to) (?P<k>[\w' -]{2,40}?)(?: is| are|'s|:| has always been)(?:"
        r" now| definitely| probably)* V", "{f} {k}: {v}", "preference 3", "favourite:{k}", "list"),
    _rule(
        rf"(?:new |current )?(?P<k>{_SOLE_KIN})(?:'s name is| is(?: now)?(?= (?-i:[A-Z]))|(?: is|'s) (?:called"
        rf"|named)|'s name:) V",
        "{k}'s name: {v}", "relationship 4", "{k}:name", "name",
    ),
    _rule(
        rf"(?P<k>{_KIN})(?:'s name is|(?: is|'s) (?:called|named)|'s name:) V",
        "{k}'s name: {v}", "relationship 4", "{k}:name:{key}", "name",
    ),
    _rule(
        rf"(?P<k>{_KIN}'s (?:[\w-]+ ){{0,2}}[\w-]+) (?:is|was) (?!(?:so|very|really|great|nice|sick|ill|fine)\b)V",
        "{k}: {v}", "relationship 3", "their:{k}", "rest",
    ),
    _rule(rf"(?P<v>{_KIN}(?: [A-Z]\w+)? (?:is|has) .*allerg.*)", "{v}", "relationship 5", "", "rest"),
    _rule(
        rf"(?P<v>{_KIN}s?,?(?: (?-i:[A-Z])\w+,?)? (?:is|are|has|have|had|was|works?|lives?|loves?|likes?|hates?"
        rf"|plays?|studies|goes|teaches|runs|wants|needs|speaks|moved|died|passed|got|turned|started|\w+ed) .*)",
        "{v}", "relationship 3", "", "rest",
    ),
    _rule(rf"(?P<k>(?:new |current )?(?:{_LABELS}))(?: is| are|'s|:)(?: now| currently| actually)? (?!going"
        rf"|coming|doing|(?:so|very|really|pretty)\b)V", "{k}: {v}", "identity 3", "my:{k}", "rest"),
)  # fmt: skip

_THE = (
    _rule(r"(?P<k>(?:(?!(?:budget|is|on|for|to|of|with)\b)\w+ ){0,2})budget(?::| (?:is|was|has (?:gone|changed|risen"
        r"|dropped|increased) (?:up |down )?to|went (?:up|down) to|remains))(?: now| actually| only| about|"
        r" around| just| still)* V", "{k}budget: {v}", "constraint 4", "{k}budget", "one"),
    _rule(
        r"(?P<k>(?:(?!(?:deadline|is|on|for|to|of|with)\b)\w+ ){0,2})deadline(?::| (?:is|was|has (?:moved|changed) to"
        r"|moved to|remains))(?: now| actually| still| on)* V",
        "{k}deadline: {v}", "constraint 4", "{k}deadline", "one",
    ),
    _rule(
        rf"(?P<k>{_THINGS})(?: is|'s|:| has (?:moved|changed) to| moved to)(?: now| currently| actually| on| at| in)* "
        r"(?=.*(?-i:[A-Z0-9]))V",
        "{k}: {v}", "other 3", "my:{k}", "rest",
    ),
)  # fmt: skip

_DATED = (
    _rule(
        r"(?P<k>[a-z][\w-]*(?: [a-z][\w-]*)?)(?: is| starts| begins| (?:has |was |is )?(?:now )?moved to)(?: now)? "
        rf"(?:on |at |in )?(?={_DATE})V", "{k}: {v}", "plan 3", "my:{k}", "rest",
    ),
)  # fmt: skip
_WOULD = (
    _rule(rf"(?:also |really )*(?:like|love) to (?P<k>{_GO}) V", "Would like to {k} {v}", "plan 2"),
    _rule(r"(?:much |really )*prefer (?!not\b|to avoid\b)V", "Prefers {v}", "preference 3", "taste:{key}", "list"),
)
_CHOOSE = (
    _rule(r"(?:use|using|go(?:ing)? with|switch(?:ing)? to|pick|choose|stick with) (?P<v>.{2,60}?)(?: instead)?"
        r" for (?P<a>the |our |my )?"
          r"(?P<k>(?:(?!and\b)[\w-]+ ?){1,4})$",
          "Use {v} for {a}{k}", "requirement 3", "use for:{k}"),
    _rule(r"(?P<k>use|go with|switch to|upgrade to|stick with|pick|choose|move to|migrate to) V",
          "{k} {v}", "requirement 3"),
)  # fmt: skip

_WILL = (_rule(_FUTURE + r"(?!let you|keep (?:you|that|it|this)\b|tell|try)(?:be )?V", "Will {v}", "plan 2"),)

BY_SUBJECT = {"am": _AM, "have": _HAVE, "do": _DO, "will": _WILL, "would": _WOULD, "choose": _CHOOSE}
BY_SUBJECT |= {"my": _THE + _MY + _DATED, "the": _THE + _DATED}
