"""0015 messages that prompts do not show"""

import sqlalchemy as sa
from alembic import op

import models

revision = '0015'
down_revision = '0014'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('messages', sa.Column('hidden_at', models.UTCDateTime(), nullable=True))
    hidden = sa.text('hidden_at IS NOT NULL')
    op.create_index('ix_messages_hidden', 'messages', ['session_id'], sqlite_where=hidden, postgresql_where=hidden)


def downgrade():
    op.drop_index('ix_messages_hidden', 'messages')
    op.drop_column('messages', 'hidden_at')
