"""0029 documents, whose passages are the messages of sessions of their own"""

import sqlalchemy as sa
from alembic import op

revision = '0029'
down_revision = '0028'
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade():
    op.add_column('sessions', sa.Column('is_document', sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        'documents',
        sa.Column('session_id', BIG_ID, sa.ForeignKey('sessions.id', ondelete='CASCADE'), primary_key=True),
        sa.Column('owner_id', BIG_ID, sa.ForeignKey('owners.id', ondelete='CASCADE'), nullable=False),
        sa.Column('external_id', sa.String(256)),
        sa.Column('uri', sa.Text()),
        sa.Column('media_type', sa.String(64), nullable=False),
        sa.Column('digest', sa.String(64), nullable=False),
        sa.Column('size', sa.Integer(), nullable=False),
        sa.Column('pages', sa.Integer()),
    )
    op.create_index('uq_documents_owner_external', 'documents', ['owner_id', 'external_id'], unique=True)
    op.create_index('ix_documents_owner_digest', 'documents', ['owner_id', 'digest'])


def downgrade():
    raise RuntimeError('To return to an earlier Recap, restore a backup that it made.')
