"""0032 the time zone of a session's person"""

import sqlalchemy as sa
from alembic import op

revision = '0032'
down_revision = '0031'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('sessions', sa.Column('timezone', sa.String(64)))


def downgrade():
    raise RuntimeError('To return to an earlier Recap, restore a backup that it made.')
