"""0020 the schema

Databases of earlier revisions are upgraded to this one by the version of Recap that still had their migrations; env.py
says so.  Constraints get their names from the naming convention of `models.Base`.
"""

import sqlalchemy as sa
from alembic import op

revision = '0020'
down_revision = None
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')  # SQLite numbers rows only in a column declared INTEGER
NAME = sa.String(256).with_variant(sa.String(256, collation='C'), 'postgresql')  # sorted by bytes, as SQLite does


def upgrade():
    op.create_table(
        'keys',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('tenant', sa.String(64), nullable=False),
        sa.Column('user_id', sa.String(256)),
        sa.Column('scopes', sa.String(64), nullable=False),
        sa.Column('label', sa.String(200), nullable=False),
        sa.Column('hint', sa.String(16), nullable=False),
        sa.Column('digest', sa.String(64), nullable=False),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.Column('revoked_at', sa.DateTime()),
        sa.UniqueConstraint('digest'),
        sqlite_autoincrement=True,
    )

    op.create_table(
        'model_server',
        sa.Column('id', sa.Integer(), primary_key=True),
        sa.Column('base_url', sa.Text(), nullable=False),
        sa.Column('api_key', sa.Text(), nullable=False),
        sa.Column('main', sa.String(256), nullable=False),
        sa.Column('mini', sa.String(256), nullable=False),
        sa.Column('updated_at', sa.DateTime(), nullable=False),
    )

    op.create_table(
        'owners',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('tenant', sa.String(64), nullable=False),
        sa.Column('kind', sa.String(8), nullable=False),
        sa.Column('name', sa.String(256), nullable=False),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.Column('profile_through', BIG_ID, nullable=False, server_default='0'),
        sa.Column('consolidated_through', BIG_ID, nullable=False, server_default='0'),
        sa.Column('consolidated_at', sa.DateTime()),
        sa.UniqueConstraint('tenant', 'kind', 'name'),
        sqlite_autoincrement=True,
    )

    op.create_table(
        'prompts',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('tenant', sa.String(64), nullable=False),
        sa.Column('name', sa.String(64), nullable=False),
        sa.Column('version', sa.Integer(), nullable=False),
        sa.Column('text', sa.Text(), nullable=False),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.UniqueConstraint('tenant', 'name', 'version'),
        sqlite_autoincrement=True,
    )

    op.create_table(
        'queues',
        sa.Column('kind', sa.String(16), primary_key=True),
        sa.Column('tenant', sa.String(64), primary_key=True),
        sa.Column('served', sa.BigInteger(), nullable=False),
        sa.Column('round', sa.Integer(), nullable=False),
    )

    op.create_table(
        'archives',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('owner_id', BIG_ID, sa.ForeignKey('owners.id', ondelete='CASCADE'), nullable=False),
        sa.Column('session_id', sa.String(128), nullable=False),
        sa.Column('title', sa.String(200), nullable=False),
        sa.Column('message_count', sa.Integer(), nullable=False),
        sa.Column('first_message_at', sa.DateTime()),
        sa.Column('last_message_at', sa.DateTime()),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.Column('document', sa.LargeBinary(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index('ix_archives_owner', 'archives', ['owner_id', 'id'])

    op.create_table(
        'items',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('owner_id', BIG_ID, sa.ForeignKey('owners.id', ondelete='CASCADE'), nullable=False),
        sa.Column('namespace', NAME, nullable=False),
        sa.Column('key', NAME, nullable=False),
        sa.Column('value', sa.JSON(), nullable=False),
        sa.Column('version', sa.Integer(), nullable=False),
        sa.Column('ttl_minutes', sa.Double()),
        sa.Column('refreshes', sa.Boolean(), nullable=False),
        sa.Column('expires_at', sa.DateTime()),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.Column('updated_at', sa.DateTime(), nullable=False),
        sa.UniqueConstraint('owner_id', 'namespace', 'key'),
        sqlite_autoincrement=True,
    )
    op.create_index('ix_items_owner_expires', 'items', ['owner_id', 'expires_at'])
    op.create_index('ix_items_owner_updated', 'items', ['owner_id', 'updated_at', 'id'])

    op.create_table(
        'sessions',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('tenant', sa.String(64), nullable=False),
        sa.Column('public_id', sa.String(128), nullable=False),
        sa.Column('owner_id', BIG_ID, sa.ForeignKey('owners.id', ondelete='CASCADE'), nullable=False),
        sa.Column('title', sa.String(200), nullable=False),
        sa.Column('system_prompt', sa.Text()),
        sa.Column('pinned', sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column('archived', sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column('type', sa.String(64)),
        sa.Column('recognised_type', sa.String(64)),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.Column('updated_at', sa.DateTime(), nullable=False),
        sa.Column('imported_at', sa.DateTime()),
        sa.Column('opening', sa.String(64)),
        sa.Column('message_count', sa.Integer(), nullable=False),
        sa.Column('tokens', sa.Integer(), nullable=False),
        sa.Column('summary_version', sa.Integer(), nullable=False),
        sa.Column('summary_through', sa.Integer(), nullable=False),
        sa.Column('facts_through', sa.Integer(), nullable=False),
        sa.Column('head_version', sa.Integer(), nullable=False),
        sa.Column('head_through', sa.Integer(), nullable=False),
        sa.Column('head_tokens', sa.Integer(), nullable=False),
        sa.Column('head_facts', sa.JSON()),
        sa.Column('head_type', sa.String(64)),
        sa.Column('head_at', sa.DateTime()),
        sa.Column('lease_token', sa.String(64)),
        sa.Column('lease_until', sa.DateTime()),
        sa.Column('stop_token', sa.String(64)),
        sa.UniqueConstraint('tenant', 'public_id'),
        sqlite_autoincrement=True,
    )
    op.create_index('ix_sessions_opening', 'sessions', ['opening'])
    op.create_index('ix_sessions_owner_id', 'sessions', ['owner_id'])
    op.create_index('ix_sessions_tenant_updated', 'sessions', ['tenant', 'updated_at', 'id'])

    op.create_table(
        'spending',
        sa.Column('owner_id', BIG_ID, sa.ForeignKey('owners.id', ondelete='CASCADE'), primary_key=True),
        sa.Column('day', sa.Date(), primary_key=True),
        sa.Column('tokens', sa.BigInteger(), nullable=False),
    )

    op.create_table(
        'item_versions',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('item_id', BIG_ID, sa.ForeignKey('items.id', ondelete='CASCADE'), nullable=False),
        sa.Column('version', sa.Integer(), nullable=False),
        sa.Column('value', sa.JSON(), nullable=False),
        sa.Column('author', sa.String(16), nullable=False),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.UniqueConstraint('item_id', 'version'),
        sqlite_autoincrement=True,
    )

    op.create_table(
        'jobs',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('kind', sa.String(16), nullable=False),
        sa.Column('key', sa.String(64), nullable=False),
        sa.Column('tenant', sa.String(64), nullable=False, server_default=''),
        sa.Column('owner_id', BIG_ID, sa.ForeignKey('owners.id', ondelete='CASCADE')),
        sa.Column('session_id', BIG_ID, sa.ForeignKey('sessions.id', ondelete='CASCADE')),
        sa.Column('payload', sa.JSON()),
        sa.Column('state', sa.String(8), nullable=False),
        sa.Column('revision', sa.Integer(), nullable=False),
        sa.Column('attempts', sa.Integer(), nullable=False),
        sa.Column('round', sa.Integer(), nullable=False, server_default='0'),
        sa.Column('run_at', sa.DateTime(), nullable=False),
        sa.Column('lease_token', sa.String(64)),
        sa.Column('lease_until', sa.DateTime()),
        sa.Column('error', sa.Text()),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.Column('updated_at', sa.DateTime(), nullable=False),
        sa.UniqueConstraint('kind', 'key'),
        sqlite_autoincrement=True,
    )
    op.create_index('ix_jobs_due', 'jobs', ['kind', 'state', 'run_at'])
    op.create_index('ix_jobs_owner_kind', 'jobs', ['owner_id', 'kind', 'round'])
    op.create_index('ix_jobs_queue', 'jobs', ['kind', 'state', 'tenant', 'round', 'run_at', 'id', 'updated_at'])
    op.create_index('ix_jobs_session_id', 'jobs', ['session_id'])
    op.create_index('ix_jobs_tenant', 'jobs', ['tenant', 'id'])

    op.create_table(
        'messages',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('session_id', BIG_ID, sa.ForeignKey('sessions.id', ondelete='CASCADE'), nullable=False),
        sa.Column('owner_id', BIG_ID, sa.ForeignKey('owners.id', ondelete='CASCADE'), nullable=False),
        sa.Column('branch', sa.Integer(), nullable=False, server_default='0'),
        sa.Column('position', sa.Integer(), nullable=False),
        sa.Column('role', sa.String(16), nullable=False),
        sa.Column('name', sa.String(128)),
        sa.Column('content', sa.Text(), nullable=False),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.Column('external_id', sa.String(256)),
        sa.Column('tokens', sa.Integer(), nullable=False),
        sa.Column('extra', sa.JSON()),
        sa.Column('indexed_in', sa.String(32)),
        sa.Column('replaced_after', BIG_ID),
        sa.Column('erased_at', sa.DateTime()),
        sa.Column('hidden_at', sa.DateTime()),
        sa.Column('refused', sa.JSON()),
        sa.UniqueConstraint('session_id', 'branch', 'position'),
        sqlite_autoincrement=True,
    )
    op.create_index('ix_messages_owner_indexed', 'messages', ['owner_id', 'indexed_in'])
    where = sa.text('hidden_at IS NOT NULL OR refused IS NOT NULL')
    op.create_index('ix_messages_unshown', 'messages', ['session_id', 'branch'], sqlite_where=where, postgresql_where=where)
    op.create_index('uq_messages_session_external', 'messages', ['session_id', 'external_id'], unique=True)

    op.create_table(
        'summaries',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('session_id', BIG_ID, sa.ForeignKey('sessions.id', ondelete='CASCADE'), nullable=False),
        sa.Column('version', sa.Integer(), nullable=False),
        sa.Column('branch', sa.Integer(), nullable=False, server_default='0'),
        sa.Column('sections', sa.JSON(), nullable=False),
        sa.Column('through', sa.Integer(), nullable=False),
        sa.Column('tokens', sa.Integer(), nullable=False),
        sa.Column('author', sa.String(16), nullable=False),
        sa.Column('model', sa.String(128)),
        sa.Column('prompt', sa.String(80)),
        sa.Column('usage', sa.JSON()),
        sa.Column('restores', sa.Integer()),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.UniqueConstraint('session_id', 'version'),
        sqlite_autoincrement=True,
    )

    op.create_table(
        'facts',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('owner_id', BIG_ID, sa.ForeignKey('owners.id', ondelete='CASCADE'), nullable=False),
        sa.Column('session_id', BIG_ID, sa.ForeignKey('sessions.id', ondelete='CASCADE')),
        sa.Column('source_message_id', BIG_ID, sa.ForeignKey('messages.id', ondelete='CASCADE')),
        sa.Column('text', sa.Text(), nullable=False),
        sa.Column('category', sa.String(32), nullable=False),
        sa.Column('importance', sa.Integer(), nullable=False),
        sa.Column('scope', sa.String(8), nullable=False),
        sa.Column('quote', sa.Text(), nullable=False),
        sa.Column('pinned', sa.Boolean(), nullable=False),
        sa.Column('recalled_count', sa.Integer(), nullable=False),
        sa.Column('valid_from', sa.DateTime(), nullable=False),
        sa.Column('valid_to', sa.DateTime()),
        sa.Column('superseded_by', BIG_ID, sa.ForeignKey('facts.id', ondelete='SET NULL')),
        sa.Column('merged', sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column('links', sa.JSON()),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sqlite_autoincrement=True,
    )
    where = sa.text('links IS NOT NULL')
    op.create_index('ix_facts_linked', 'facts', ['owner_id'], sqlite_where=where, postgresql_where=where)
    op.create_index('ix_facts_owner_valid', 'facts', ['owner_id', 'valid_to'])
    op.create_index('ix_facts_session_id', 'facts', ['session_id'])
    op.create_index('ix_facts_source_message_id', 'facts', ['source_message_id'])
    op.create_index('ix_facts_superseded_by', 'facts', ['superseded_by'])

    op.create_table(
        'item_sources',
        sa.Column('item_id', BIG_ID, sa.ForeignKey('items.id', ondelete='CASCADE'), primary_key=True),
        sa.Column('message_id', BIG_ID, sa.ForeignKey('messages.id', ondelete='CASCADE'), primary_key=True),
    )
    op.create_index('ix_item_sources_message_id', 'item_sources', ['message_id'])

    op.create_table(
        'turns',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('tenant', sa.String(64), nullable=False),
        sa.Column('session_id', BIG_ID, sa.ForeignKey('sessions.id', ondelete='CASCADE'), nullable=False),
        sa.Column('user_message_id', BIG_ID, sa.ForeignKey('messages.id', ondelete='CASCADE'), nullable=False),
        sa.Column('reply_message_id', BIG_ID, sa.ForeignKey('messages.id', ondelete='CASCADE')),
        sa.Column('idempotency_key', sa.String(256)),
        sa.Column('fingerprint', sa.String(64)),
        sa.Column('lease_token', sa.String(64)),
        sa.Column('so_far', sa.Text()),
        sa.Column('completion_id', sa.String(64)),
        sa.Column('finish_reason', sa.String(32)),
        sa.Column('model', sa.String(128)),
        sa.Column('memory', sa.JSON()),
        sa.Column('usage', sa.JSON()),
        sa.Column('started_at', sa.DateTime(), nullable=False),
        sa.Column('finished_at', sa.DateTime()),
        sa.UniqueConstraint('reply_message_id'),
        sa.UniqueConstraint('tenant', 'idempotency_key'),
        sa.UniqueConstraint('user_message_id'),
        sqlite_autoincrement=True,
    )
    op.create_index('ix_turns_fingerprint', 'turns', ['fingerprint'])
    op.create_index('ix_turns_session_id', 'turns', ['session_id'])

    op.create_table(
        'fact_revisions',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('fact_id', BIG_ID, sa.ForeignKey('facts.id', ondelete='CASCADE'), nullable=False),
        sa.Column('action', sa.String(16), nullable=False),
        sa.Column('author', sa.String(8), nullable=False),
        sa.Column('text', sa.Text(), nullable=False),
        sa.Column('category', sa.String(32), nullable=False),
        sa.Column('importance', sa.Integer(), nullable=False),
        sa.Column('pinned', sa.Boolean(), nullable=False),
        sa.Column('at', sa.DateTime(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index('ix_fact_revisions_fact_id', 'fact_revisions', ['fact_id'])


def downgrade():
    raise RuntimeError('There is no earlier schema. To return to an earlier Recap, restore a backup that it made.')
