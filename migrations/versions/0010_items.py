"""0010 the store's items, their earlier values, and the messages they rest on"""

import sqlalchemy as sa
from alembic import op

import models

revision = '0010'
down_revision = '0009'
branch_labels = None
depends_on = None


def upgrade():
    big_id = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
    name = sa.String(length=256).with_variant(sa.String(length=256, collation='C'), 'postgresql')
    op.create_table(
        'items',
        sa.Column('id', big_id, nullable=False),
        sa.Column('owner_id', big_id, nullable=False),
        sa.Column('namespace', name, nullable=False),
        sa.Column('key', name, nullable=False),
        sa.Column('value', sa.JSON(), nullable=False),
        sa.Column('version', sa.Integer(), nullable=False),
        sa.Column('ttl_minutes', sa.Double(), nullable=True),
        sa.Column('refreshes', sa.Boolean(), nullable=False),
        sa.Column('expires_at', models.UTCDateTime(), nullable=True),
        sa.Column('created_at', models.UTCDateTime(), nullable=False),
        sa.Column('updated_at', models.UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(['owner_id'], ['owners.id'], name=op.f('fk_items_owner_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_items')),
        sa.UniqueConstraint('owner_id', 'namespace', 'key', name=op.f('uq_items_owner_id_namespace_key')),
        sqlite_autoincrement=True,
    )
    op.create_index('ix_items_owner_updated', 'items', ['owner_id', 'updated_at', 'id'])
    op.create_index('ix_items_owner_expires', 'items', ['owner_id', 'expires_at'])
    op.create_table(
        'item_versions',
        sa.Column('id', big_id, nullable=False),
        sa.Column('item_id', big_id, nullable=False),
        sa.Column('version', sa.Integer(), nullable=False),
        sa.Column('value', sa.JSON(), nullable=False),
        sa.Column('author', sa.String(length=16), nullable=False),
        sa.Column('created_at', models.UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(['item_id'], ['items.id'], name=op.f('fk_item_versions_item_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_item_versions')),
        sa.UniqueConstraint('item_id', 'version', name=op.f('uq_item_versions_item_id_version')),
        sqlite_autoincrement=True,
    )
    op.create_table(
        'item_sources',
        sa.Column('item_id', big_id, nullable=False),
        sa.Column('message_id', big_id, nullable=False),
        sa.ForeignKeyConstraint(['item_id'], ['items.id'], name=op.f('fk_item_sources_item_id'), ondelete='CASCADE'),
        sa.ForeignKeyConstraint(
            ['message_id'], ['messages.id'], name=op.f('fk_item_sources_message_id'), ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('item_id', 'message_id', name=op.f('pk_item_sources')),
    )
    op.create_index(op.f('ix_item_sources_message_id'), 'item_sources', ['message_id'])


def downgrade():
    for name in ('item_sources', 'item_versions', 'items'):
        op.drop_table(name)
    op.execute("DELETE FROM owners WHERE kind = 'tenant'")
