"""0005 openings

The opening of a conversation whose client names no session: a hash of the person, the first question and the first
answer.  Before, the ids of such sessions began with `auto-`; these get their openings here.
"""

import hashlib
import json
import re

import sqlalchemy as sa
from alembic import op

revision = '0005'
down_revision = '0004'
branch_labels = None
depends_on = None

THINKING = re.compile(r'<think(?:ing)?>.*?</think(?:ing)?>|<details type="reasoning".*?</details>', re.DOTALL)

FIRST = """
    SELECT role, content FROM messages
    WHERE session_id = :session AND branch = 0 AND erased_at IS NULL AND role IN ('user', 'assistant')
    ORDER BY position LIMIT 4
"""


def upgrade():
    op.add_column('sessions', sa.Column('opening', sa.String(length=64), nullable=True))
    op.create_index('ix_sessions_opening', 'sessions', ['opening'])
    op.create_index('ix_turns_fingerprint', 'turns', ['fingerprint'])
    connection = op.get_bind()
    sessions = connection.execute(
        sa.text(
            "SELECT sessions.id, sessions.tenant, owners.kind, owners.name FROM sessions "
            "JOIN owners ON owners.id = sessions.owner_id WHERE sessions.public_id LIKE 'auto-%'"
        )
    ).all()
    for session, tenant, kind, name in sessions:
        line = connection.execute(sa.text(FIRST), {'session': session}).all()
        found = opening(tenant, name if kind == 'user' else None, line)
        if found is not None:
            update = sa.text('UPDATE sessions SET opening = :opening WHERE id = :session')
            connection.execute(update, {'opening': found, 'session': session})


def opening(tenant, user_id, line):
    """As `memory.transcripts.matching.opening` makes it of answers without calls of tools."""
    asked = next((place for place, (role, _) in enumerate(line) if role == 'user'), len(line))
    answer = next((content for role, content in line[asked:] if role == 'assistant'), None)
    if answer is None:
        return None
    parts = (tenant, user_id, words(line[asked][1]), words(THINKING.sub('', answer)), ())
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def words(text):
    return ' '.join(text.split())


def downgrade():
    op.drop_index('ix_turns_fingerprint', 'turns')
    op.drop_index('ix_sessions_opening', 'sessions')
    op.drop_column('sessions', 'opening')
