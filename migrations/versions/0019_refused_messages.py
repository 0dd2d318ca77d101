"""0019 refused messages, and a job that takes models' thoughts out of what is stored"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = '0019'
down_revision = '0018'
branch_labels = None
depends_on = None

# Where nothing was ever said, there is nothing to clean.
ASK = """
    INSERT INTO jobs (kind, key, tenant, state, revision, attempts, round, run_at, created_at, updated_at)
    SELECT 'thoughts', 'all', 'default', 'pending', 1, 0, 0, :now, :now, :now
    WHERE EXISTS (SELECT id FROM messages)
"""


def upgrade():
    op.add_column('messages', sa.Column('refused', sa.JSON(), nullable=True))
    op.drop_index('ix_messages_hidden', 'messages')
    unshown = sa.text('hidden_at IS NOT NULL OR refused IS NOT NULL')
    columns = ['session_id', 'branch']
    op.create_index('ix_messages_unshown', 'messages', columns, sqlite_where=unshown, postgresql_where=unshown)
    now = sa.bindparam('now', datetime.now(UTC).replace(tzinfo=None), type_=sa.DateTime())
    op.get_bind().execute(sa.text(ASK).bindparams(now))


def downgrade():
    op.execute("DELETE FROM jobs WHERE kind = 'thoughts'")
    op.drop_index('ix_messages_unshown', 'messages')
    hidden = sa.text('hidden_at IS NOT NULL')
    op.create_index('ix_messages_hidden', 'messages', ['session_id'], sqlite_where=hidden, postgresql_where=hidden)
    op.drop_column('messages', 'refused')
