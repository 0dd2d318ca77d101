"""0026 the programs that people connected with their keys, and their tokens"""

import sqlalchemy as sa
from alembic import op

revision = '0026'
down_revision = '0025'
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def upgrade():
    op.create_table(
        'oauth_grants',
        sa.Column('id', BIG_ID, primary_key=True),
        sa.Column('key_id', BIG_ID, sa.ForeignKey('keys.id', ondelete='CASCADE'), nullable=False, index=True),
        sa.Column('client', sa.String(64), nullable=False),
        sa.Column('name', sa.String(100), nullable=False),
        sa.Column('redirect_uri', sa.Text(), nullable=False),
        sa.Column('challenge', sa.String(43), nullable=False),
        sa.Column('resource', sa.Text(), nullable=False),
        sa.Column('scopes', sa.String(64), nullable=False),
        sa.Column('created_at', sa.DateTime(), nullable=False),
        sa.Column('renewed_at', sa.DateTime(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        'oauth_tokens',
        sa.Column('digest', sa.String(64), primary_key=True),
        sa.Column('grant_id', BIG_ID, sa.ForeignKey('oauth_grants.id', ondelete='CASCADE'), nullable=False, index=True),
        sa.Column('kind', sa.String(8), nullable=False),
        sa.Column('expires_at', sa.DateTime(), nullable=False),
        sa.Column('used_at', sa.DateTime()),
    )


def downgrade():
    raise RuntimeError('To return to an earlier Recap, restore a backup that it made.')
