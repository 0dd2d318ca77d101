"""0004 keys, spending, erased messages

Keys that are made by a command; what each owner's model calls took on a day; the place of a message that was erased.
"""

import sqlalchemy as sa
from alembic import op

import models

revision = '0004'
down_revision = '0003'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        'keys',
        sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
        sa.Column('tenant', sa.String(length=64), nullable=False),
        sa.Column('user_id', sa.String(length=256), nullable=True),
        sa.Column('scopes', sa.String(length=64), nullable=False),
        sa.Column('label', sa.String(length=200), nullable=False),
        sa.Column('hint', sa.String(length=16), nullable=False),
        sa.Column('digest', sa.String(length=64), nullable=False),
        sa.Column('created_at', models.UTCDateTime(), nullable=False),
        sa.Column('revoked_at', models.UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_keys')),
        sa.UniqueConstraint('digest', name=op.f('uq_keys_digest')),
        sqlite_autoincrement=True,
    )
    op.create_table(
        'spending',
        sa.Column('owner_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
        sa.Column('day', sa.Date(), nullable=False),
        sa.Column('tokens', sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ['owner_id'], ['owners.id'], name=op.f('fk_spending_owner_id'), ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('owner_id', 'day', name=op.f('pk_spending')),
    )
    op.add_column('messages', sa.Column('erased_at', models.UTCDateTime(), nullable=True))


def downgrade():
    op.drop_column('messages', 'erased_at')
    op.drop_table('spending')
    op.drop_table('keys')
