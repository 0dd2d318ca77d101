"""0018 archives of sessions"""

import sqlalchemy as sa
from alembic import op

import models

revision = '0018'
down_revision = '0017'
branch_labels = None
depends_on = None


def upgrade():
    big_id = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
    op.create_table(
        'archives',
        sa.Column('id', big_id, nullable=False),
        sa.Column('owner_id', big_id, nullable=False),
        sa.Column('session_id', sa.String(length=128), nullable=False),
        sa.Column('title', sa.String(length=200), nullable=False),
        sa.Column('message_count', sa.Integer(), nullable=False),
        sa.Column('first_message_at', models.UTCDateTime(), nullable=True),
        sa.Column('last_message_at', models.UTCDateTime(), nullable=True),
        sa.Column('created_at', models.UTCDateTime(), nullable=False),
        sa.Column('document', sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(['owner_id'], ['owners.id'], name=op.f('fk_archives_owner_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_archives')),
        sqlite_autoincrement=True,
    )
    op.create_index('ix_archives_owner', 'archives', ['owner_id', 'id'])


def downgrade():
    op.drop_table('archives')
