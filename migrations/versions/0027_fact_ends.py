"""0027 when a fact ends by itself, and which facts wait for review"""

import sqlalchemy as sa
from alembic import op

revision = '0027'
down_revision = '0026'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('facts', sa.Column('expires_at', sa.DateTime(), nullable=True))
    op.add_column('facts', sa.Column('replaces', sa.JSON(none_as_null=True), nullable=True))
    waiting = sa.text('replaces IS NOT NULL')
    op.create_index('ix_facts_waiting', 'facts', ['owner_id'], sqlite_where=waiting, postgresql_where=waiting)


def downgrade():
    raise RuntimeError('To return to an earlier Recap, restore a backup that it made.')
