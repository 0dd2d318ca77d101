"""Chinese, in simplified characters.  It has no spaces, so patterns match inside a run of characters."""

from __future__ import annotations

from memory.languages.language import Language, Times, lines

SMALL_TALK = lines("""
    [你您]们?好吗?|大家好|嗨|哈[喽啰罗]|[早晚]安|[早晚]上好|[上中下]午好|早(?=[!！。]?$)|好久不见|在吗|在不在|我回来了
    [你您]?最近(?:好吗|怎么样|如何)|[你您]呢|[你您]?[真太]?(?:厉害|棒|牛|赞|优秀|可爱)|辛苦|吃了吗|非常感谢|感谢|多谢
    谢+[你您]?|不客气|不用谢|没关系|没事|没问题|没错|没有|好的?|行|可以|嗯+|恩+|哦+|噢+|啊+|唉+|收到|明白|知道|了解|懂
    我(?:很好|也是|也觉得|走了|先走|先睡)|原来如此|先?这样|是的?|对不起|对|不好意思|不用|不要|当然|不错|完美|有意思|有趣
    好玩|好笑|笑死我?|有道理|哈+|嘿+|呵+|嘻+|再见|拜+
    (?:[明后]天|晚上|晚点|待会儿?|一会儿?|下次|改天|回头)再?(?:见|聊|说)|早点休息|好梦|睡觉|加油|抱歉|打扰|真的吗?|随便
    无所谓|(?:生日|新年|圣诞|节日|中秋|春节)快乐|周末愉快|恭喜|祝[你您]?好运|爱你|[你您]是谁
""")
REFERENCES = lines("""
    (?:之前|以前|上次|上回|先前|刚才|刚刚|前面|前几天|那次|当时|过去|曾经|最后一次).{0,12}?(?:说|讨论|聊|谈|提|讲|推荐|建议|告诉|给|问|发|写|定|决定|答应|介绍|做|买|选|看|列|那|的)
    (?:说|讨论|聊|谈|提|提到|讲|推荐|建议|告诉|给|问|发|写|介绍|教|列|答应)过
    (?:还|你|您|是否)?记得(?:吗|不|我|你|那|我们|上|之)?|记不记得|忘了(?:吗|我)|提醒我一?下?(?:之前|上次|我们|什么|是)
    (?:你|您|我|我们|咱们)(?:说|讨论|聊|推荐|建议|提|提到|告诉我|给我|讲)(?:了|的|到)
    (?:接着|继续|回到)(?:上次|之前|刚才|前面|我们|那个|聊|说|讨论)|(?:跟|和|对)你(?:说|讲|提)|老样子
    [像跟](?:上次|之前)一样|[你您](?:知道|了解)我
""")
POINTERS = (
    "我(?:的|家|妈|爸|老板|妻子|丈夫|老婆|老公|女儿|儿子|朋友|叫什么|是谁|住|喜欢|几岁|多大)|那[个本家位件次部条]"
    "|[他她](?:们|怎么|最近|还|现在|好)"
)

# What is no content in a run; the words before it are kept whole, because characters of it stand in them.
IDLE = lines("""
    为什么|怎么样|怎么办|是不是|有没有|能不能|可不可以|记不记得|叫什么|什么时候|什么|怎么|怎样|如何|哪里|哪儿|多少|几个
    哪[个些本家位]|[这那][个些里样次]|[我你您他她它咱]们|大家|自己|一下|一些|一点|一起|一[个只本家封篇条张件首]|有点
    关于|之前|以前|曾经|刚才|刚刚|后来|然后|现在|最近|[今昨明前后]天|[上下]一?次|[上下]个?月|[上下本]周|[今去明]年|早上
    晚上|[上下中]午|时候|时间|告诉|说过?|提到过?|提过|记得|讨论过?|聊[过了]?|谈[过了]|知道|觉得|认为|想要|需要|可以|能够
    应该|可能|必须|已经|正在|还是|或者|但是|因为|所以|如果|虽然|不过|而且|以及|帮忙|请问|谢谢|[你您]好|好的|哈+|推荐
    建议|东西|事情|问题|办法|方法|继续|[我你您他她它咱的了吗呢吧啊呀嘛哦嗯是和与也都就谁请这那很]
""")
_KEPT = "目的地?|首都|成都|都市|就业|成就|参与|他人|吉他|其他|和平|了解"

_DIGITS = "零一二三四五六七八九"


def _said(number: int) -> str:
    """A number from 1 to 99 as it is written: 二十三."""
    tens, ones = divmod(number, 10)
    ten = "" if not tens else "十" if tens == 1 else _DIGITS[tens] + "十"
    return ten + (_DIGITS[ones] if ones else "")


_NUMBERS = {_said(number): number for number in range(1, 100)} | {"两": 2}
_COUNTS: dict[str, tuple[float, float]] = {said: (number, number) for said, number in _NUMBERS.items()}
_COUNTS |= {"几": (2, 6), "好几": (3, 8), "数": (2, 6), "两三": (2, 3), "三四": (3, 4)}
_WEEK = "(?:周|星期|礼拜)"
_NOT_A_PART = "(?<![0-9.第个每下一二两三四五六七八九十几])"
_YEAR = "<year>年?(?![轻龄级])"
_DAY = "<day>[日号](?![线楼])"

TIMES = Times(
    phrases=(
        "(?<![之以])<named>(?![气空])",
        f"<shift>一?个?{_WEEK}(?!日常|日期)<weekday>",
        f"(?<![晚早马])<shift>一?个?{_WEEK}末(?P<weekend>)",
        "(?<![晚早马])<shift>一?个?<unit>(?![亮球饼])",
        "<count>个?<unit>(?:之|以)?(?P<ago>前)(?![天年面])",
        "(?P<past>最近|过去|近|这)的?<count>个?<unit>",
        f"{_YEAR}的?<month>月份?的?(?:{_DAY})?",
        f"{_YEAR}的?<season>[天季]?",
        f"{_YEAR}的?<holiday>节?",
        "(?P<year>(?:19|20)[0-9]{2})年",
        "<shift>(?:年)(?![轻龄级])",
        f"(?<![明后每]年){_NOT_A_PART}<month>月(?![球亮饼])份?(?:{_DAY})?",
        "<holiday>节",
        f"{_NOT_A_PART}{_WEEK}(?!日常|日期)<weekday>(?!次)",
    ),
    named={
        "今天": ("day", 0),
        "昨天": ("day", -1),
        "昨日": ("day", -1),
        "前天": ("day", -2),
        "大前天": ("day", -3),
        "今早": ("morning", 0),
        "今天早上": ("morning", 0),
        "昨晚": ("night", -1),
        "昨天晚上": ("night", -1),
        "今晚": ("night", 0),
        "上周末": ("weekend", -1),
        "上个周末": ("weekend", -1),
        "今年": ("year", 0),
        "去年": ("year", -1),
        "前年": ("year", -2),
        "最近": ("past day", 14),
        "近来": ("past day", 14),
        "这几天": ("past day", 7),
        "前几天": ("past day", 7),
    },
    shifts={"上": -1, "上上": -2, "这": 0, "本": 0, "去年": -1, "今年": 0, "前年": -2},
    numbers=_COUNTS,
    units={"分钟": "minute", "小时": "hour", "钟头": "hour", "天": "day", "日": "day"}
    | dict.fromkeys(("周", "星期", "礼拜"), "week")
    | {"月": "month", "年": "year"},
    months={_said(month): month for month in range(1, 13)} | {str(month): month for month in range(1, 13)},
    weekdays={said: at for at, said in enumerate("一二三四五六日")} | {"天": 6},
    seasons={"春": 3, "夏": 6, "秋": 9, "冬": 12},
    holidays={"圣诞": (12, 24, 3), "元旦": (1, 1, 1), "国庆": (10, 1, 7)},
    endings={
        "以来": "since",
        "起": "since",
        "开始": "since",
        "之后": "after",
        "以后": "after",
        "之前": "before",
        "以前": "before",
    },
    to="到|至|-|~",
    verbs="要|将|打算|计划|准备|(?P<past>了|过)",
)

LANGUAGE = Language(
    "zh",
    spaced=False,
    idle=f"(?P<keep>{_KEPT})|{IDLE}",
    idle_leading="在有对把被让给跟从到向为太更最还再又不没会能要想用去来做帮写看找问读买个些么过着得地怎叫好行上下一",
    small_talk=f"(?:那就?|就|真的?)?(?:{SMALL_TALK})[了啦呀啊哦吧呢哟嘛的你您～]*",
    references=REFERENCES,
    pointers=POINTERS,
    persons=POINTERS,
    asks="[?？吗呢]|什么|[谁哪几]|怎[么样]|多少|为何|告诉我",
    numbers=_NUMBERS | {"〇": 0, "零": 0, "二": 2, "兩": 2, "双": 2, "百": 100, "千": 1000, "万": 10**4, "萬": 10**4},
    multipliers={"千": 1000, "万": 10**4, "萬": 10**4},
    one="[一壹]",
    negations="[不没沒无無未]",
    negatives="[别別非禁戒停忌恨素]|讨厌|拒绝|避免|过敏|除",
    dates=r"\d{4}年(?:\d{1,2}月)?(?:\d{1,2}[日号])?|\d{1,2}月\d{1,2}[日号]",
    relative_times="[今明昨前后後上下本去来][天年月周週日个個]|星期|礼拜",
    times=TIMES,
)
