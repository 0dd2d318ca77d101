"""0024 events that leave no other row, webhooks and their lanes, and when a tenant last listened"""

import sqlalchemy as sa
from alembic import op

revision = '0024'
down_revision = '0023'
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade():
    op.add_column('owners', sa.Column('listened_at', sa.DateTime()))
    op.create_table(
        'events',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('owner_id', BIG_ID, sa.ForeignKey('owners.id', ondelete='CASCADE'), nullable=False),
        sa.Column('type', sa.String(32), nullable=False),
        sa.Column('data', sa.JSON(), nullable=False),
        sa.Column('at', sa.DateTime(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index('ix_events_owner_id', 'events', ['owner_id'])
    op.create_index('ix_events_at', 'events', ['at'])
    op.create_table(
        'webhooks',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('owner_id', BIG_ID, sa.ForeignKey('owners.id', ondelete='CASCADE'), nullable=False),
        sa.Column('url', sa.Text(), nullable=False),
        sa.Column('secret', sa.Text(), nullable=False),
        sa.Column('types', sa.JSON()),
        sa.Column('words', sa.Boolean(), nullable=False),
        sa.Column('enabled', sa.Boolean(), nullable=False),
        sa.Column('position', sa.String(128), nullable=False),
        sa.Column('deliveries', sa.JSON(), nullable=False),
        sa.Column('failing_since', sa.DateTime()),
        sa.Column('problem', sa.Text()),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.Column('updated_at', sa.DateTime(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index('ix_webhooks_owner_id', 'webhooks', ['owner_id'])
    op.create_table(
        'webhook_lanes',
        sa.Column('webhook_id', BIG_ID, sa.ForeignKey('webhooks.id', ondelete='CASCADE'), primary_key=True),
        sa.Column('owner_id', BIG_ID, sa.ForeignKey('owners.id', ondelete='CASCADE'), primary_key=True),
        sa.Column('position', sa.String(128), nullable=False),
    )
    op.create_index('ix_webhook_lanes_owner_id', 'webhook_lanes', ['owner_id'])


def downgrade():
    raise RuntimeError('To return to an earlier Recap, restore a backup that it made.')
