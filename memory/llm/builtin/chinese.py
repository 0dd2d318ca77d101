"""First-person statements in Chinese, as a table: see `personal`.

The fact keeps the person's own words without the leading 我.  `{key}` in an attribute is the value itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class ChineseRule:
    pattern: re.Pattern[str]
    attribute: str
    category: str
    importance: int
    ended: bool = False


_V = r"(?P<v>[^，,。！？；\s][^，,。！？；]{0,39}?)了?$"
_NOW = r"(?:现在|目前|已经|刚刚?|最近|其实|还|也|都|一直|昨天|今年|特别|非常|很|真的?)*"


_WHEN = (
    r"(?:明天|后天|今晚|(?:这|下)?个?周末|下下?个?(?:周|月|星期|礼拜)[一二三四五六日天末]?"
    r"|这?周[一二三四五六日天末]|明年|年底|月底|\d{1,2}月(?:\d{1,2}[号日])?)"
)


def _rule(pattern: str, attribute: str, category: str, importance: int, ended: bool = False) -> ChineseRule:
    return ChineseRule(re.compile(pattern), attribute, category, importance, ended)


RULES = (
    _rule(rf"(?:我|大家|你可以|请)?(?:的?名字(?:是|叫)|叫我|名叫|姓名是|叫)(?:做)?{_V}", "name", "identity", 5),
    _rule(r"我是(?P<v>[A-Z][a-z]+(?: [A-Z][a-z]+)*)$", "name", "identity", 5),
    _rule(rf"我{_NOW}不(?:再)?住在?{_V}", "lives-in", "identity", 4, True),
    _rule(rf"我们?{_NOW}(?:住在|定居在|搬到了?|搬去了?|搬家到了?|移居到?了?){_V}", "lives-in", "identity", 4),
    _rule(rf"我?的?家(?:现在)?在{_V}", "lives-in", "identity", 4),
    _rule(rf"我(?:来自|的老家(?:是|在)|老家在|出生在){_V}", "from", "identity", 4),
    _rule(r"我(?:是)?(?P<v>[^，,。！？；是]{1,8}人)$", "from", "identity", 4),
    _rule(rf"我{_NOW}(?P<v>\d{{1,3}}|[一二三四五六七八九十]{{1,3}})岁.*", "age", "identity", 4),
    _rule(rf"我的?生日(?:是|在){_V}", "birthday", "identity", 4),
    _rule(rf"我{_NOW}不(?:再)?在.{{1,30}}(?:工作|上班)(?P<v>)", "employer", "work", 3, True),
    _rule(
        rf"我{_NOW}在(?P<v>[^，,。！？；]{{1,30}})(?:工作|上班|任职|做.{{1,20}}|当.{{1,20}})$", "employer", "work", 3
    ),
    _rule(rf"我{_NOW}(?:在学|学习|正在学){_V}", "studies:{key}", "work", 3),
    _rule(rf"我的?(?:工作|职业)是{_V}", "job", "work", 3),
    _rule(rf"我{_NOW}是(?:一名|一位|一个|个|名){_V}", "job", "work", 3),
    _rule(r"我(?:对)?(?P<v>[^，,。！？；不]{1,30})(?:严重)?(?:不过敏)", "allergy:{key}", "identity", 4, True),
    _rule(rf"我{_NOW}对(?P<v>[^，,。！？；不]{{1,30}}?)(?:严重)?过敏", "allergy:{key}", "identity", 5),
    _rule(rf"我{_NOW}(?:不能|不|从不|不再)[吃喝]{_V}", "eats:{key}", "identity", 4),
    _rule(rf"我{_NOW}(?:吃素|是素食(?:者|主义者))(?P<v>)", "diet", "identity", 4),
    _rule(
        rf"我{_NOW}(?:有|患有|得了)(?P<v>[^，,。！？；]{{0,10}}(?:病|症|炎|哮喘|糖尿病|高血压))",
        "health:{key}",
        "identity",
        5,
    ),
    _rule(rf"我(?:的)?最喜欢的?(?P<k>[^，,。！？；是]{{1,12}})是{_V}", "favourite:{k}", "preference", 3),
    _rule(rf"我{_NOW}(?:不再|不|讨厌|不太)喜欢{_V}", "taste:{key}", "preference", 3),
    _rule(rf"我{_NOW}讨厌{_V}", "taste:{key}", "preference", 3),
    _rule(rf"我{_NOW}(?:最)?(?:喜欢|爱|热爱|偏好){_V}", "taste:{key}", "preference", 3),
    _rule(rf"我{_NOW}(?:会说|会讲|说){_V}", "", "identity", 3),
    _rule(rf"我{_NOW}(?:已婚|结婚了?|单身|离婚了?|订婚了?)(?P<v>)", "marital", "relationship", 3),
    _rule(
        rf"我(?:们)?{_NOW}有(?P<v>[^，,。！？；]{{0,6}}(?:孩子|儿子|女儿|哥哥|姐姐|弟弟|妹妹|猫|狗|宠物))",
        "",
        "relationship",
        3,
    ),
    _rule(
        r"我的?(?P<k>妻子|老婆|太太|丈夫|老公|女朋友|男朋友|儿子|女儿|妈妈|母亲|爸爸|父亲|哥哥|姐姐|弟弟|妹妹|猫|狗|老板)(?:的名字)?(?:叫|是)"
        rf"{_V}",
        "{k}:name",
        "relationship",
        4,
    ),
    _rule(
        r"我的?(?:妻子|老婆|太太|丈夫|老公|女朋友|男朋友|儿子|女儿|妈妈|母亲|爸爸|父亲|哥哥|姐姐|弟弟|妹妹|猫|狗)(?P<v>[^，,。！？；]{2,40})$",
        "",
        "relationship",
        3,
    ),
    _rule(rf"(?:我们?)?的?预算(?:现在)?(?:改)?(?:是|为|只有|有|最多|不超过|到)*{_V}", "budget", "constraint", 4),
    _rule(rf"(?:我们?)?的?(?:截止(?:日期|时间)?|期限|deadline|ddl)(?:是|为|在)*{_V}", "deadline", "constraint", 4),
    _rule(
        rf"我的?(?P<k>邮箱|电话|手机号|手机|地址|公司|职位|目标|爱好|专业|身高|体重|血型)(?:号码)?是{_V}",
        "my:{k}",
        "identity",
        3,
    ),
    _rule(
        rf"我们?{_NOW}(?:{_WHEN}{_NOW})?(?:打算|计划|准备|要|将要|想去|会去|去)(?!不|求|是|过|了){_V}", "", "plan", 2
    ),
    _rule(rf"我们?{_NOW}(?:在)?(?:用|使用){_V}", "uses:{key}", "preference", 3),
    _rule(
        r"我们?(?:昨天|前天|今天|上周|上个月|去年|刚才|周[一二三四五六日天])(?P<v>[^，,。！？；]{2,40})$",
        "",
        "event",
        2,
    ),
)
