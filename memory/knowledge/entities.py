"""Resolve which person, place, organisation or thing is meant by a name in relations.

An entity is nothing but its name, so it is gone with the last link that names it.  The person whose memory it is has
the name SELF.  Whoever has no name yet is called by what they are to somebody ("user's sister"), and is the same entity
as the one whom a link names as just that (user, sister, Ida).  Names are compared when they are read: no link is
rewritten, so a name that turns out wrong, or is erased, merges nothing any more.
"""

import re
from collections.abc import Iterable

from memory.quoting import one_line
from models.facts import SELF, Relation
from search_index.analysis import DEFAULT_ANALYSIS
from search_index.caches import cached
from search_index.spelling import PAIRED

_SELF = re.compile(r"(?:the )?(?:user|person)|i|me|myself|我|用户", re.I)
_OWN = re.compile(r"\b(?:my|our|(?:the )?(?:user|person)'s)(?!\w)\s*|(?:我|用户)的?", re.I)
_WORD = re.compile(rf"'s(?!\w)|[{PAIRED}]|[^\W{PAIRED}]+")
_AS = re.compile(r"\b(?:has|have|is|are|an?|the)\s+", re.I)


def stored_name(name: str, speaker: str = SELF) -> str:
    """Return a name as it is stored: "I" is the speaker, and "my sister" the speaker's sister."""
    name = one_line(name).replace("’", "'").strip(" .")
    return speaker if _SELF.fullmatch(name) else _OWN.sub(lambda _: f"{speaker}'s ", name)


def strip_possessive(name: str) -> str:
    """Return the words of a name that somebody must have said: "sister" of "user's sister"."""
    return name.rpartition("'s ")[2]


@cached(8192)
def key(name: str) -> str:
    """Return a name, or a text with names, in the form that is compared."""
    return " ".join(_WORD.findall(name.replace("’", "'").casefold()))


@cached(1024)
def _roles(relation: str) -> frozenset[str]:
    """Return the names that a relation gives somebody: an older sister is a sister."""
    role = key(_AS.sub("", relation.removesuffix(" of")))
    return frozenset(word for word in (role, role.rpartition(" ")[2]) if DEFAULT_ANALYSIS.terms(word))


class EntityResolver:
    """Resolves names in a set of relations. An entity is known by its key."""

    def __init__(self, links: Iterable[Relation]) -> None:
        self._called: dict[str, set[str]] = {}  # who may be meant by a name
        meant: dict[str, set[str]] = {}
        for link in links:
            owner, entity = key(link.subject), key(link.object)
            self._called |= {owner: {owner}, entity: {entity}}
            if link.relation.endswith(" of"):  # Ida is a sister of the user
                owner, entity = entity, owner
            for role in _roles(link.relation):
                if (name := f"{owner} 's {role}") != entity:
                    meant.setdefault(name, set()).add(entity)
        self._called |= meant

    def entity_of(self, name: str) -> str:
        """Return the entity of a name; an entity of its own where several are called so.

        My sister may be Ida's friend, and that is Tia.
        """
        entity = key(name)
        seen: set[str] = set()
        while entity not in seen and len(meant := self._called.get(entity, set())) == 1:
            seen.add(entity)
            (entity,) = meant
        return entity

    def ends_of(self, link: Relation) -> set[str]:
        """Return the two entities of a relation."""
        return {self.entity_of(link.subject), self.entity_of(link.object)}

    def entities_of(self, name: str) -> set[str]:
        """Return the entities that a name may mean."""
        return set(map(self.entity_of, self._called.get(key(stored_name(name)), ())))

    def mentioned(self, text: str) -> set[str]:
        """Return the entities that a text of the person names, without the person."""
        words = f" {key(stored_name(text))} "
        entities = (meant for name, meant in self._called.items() if f" {name} " in words)
        return set(map(self.entity_of, set[str]().union(*entities))) - {SELF}
