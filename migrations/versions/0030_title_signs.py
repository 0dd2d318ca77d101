"""0030 signs in place of their escapes in titles that a model wrote"""

import sqlalchemy as sa
from alembic import op

revision = '0030'
down_revision = '0029'
branch_labels = None
depends_on = None

ESCAPED = {'&lt;': '<', '&gt;': '>', '&#91;': '[', '&#126;': '~', '&amp;': '&'}  # the last one last: "&amp;lt;" is "&lt;"


def upgrade():
    title, content = sa.column('title'), sa.column('content')
    sessions = sa.table('sessions', sa.column('id'), title)
    messages = sa.table('messages', sa.column('session_id'), content)
    for escaped, sign in ESCAPED.items():
        said = sa.exists().where(messages.c.session_id == sessions.c.id, content.contains(escaped))
        op.execute(
            sessions.update()
            .where(title.contains(escaped), ~said)
            .values(title=sa.func.replace(title, escaped, sign))
        )


def downgrade():
    raise RuntimeError('To return to an earlier Recap, restore a backup that it made.')
