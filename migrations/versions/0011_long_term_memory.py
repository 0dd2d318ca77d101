"""0011 when a session's head was chosen, and up to which fact a profile was made"""

import sqlalchemy as sa
from alembic import op

import models

revision = '0011'
down_revision = '0010'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('sessions', sa.Column('head_at', models.UTCDateTime(), nullable=True))
    op.add_column('owners', sa.Column('profile_through', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False, server_default='0'))


def downgrade():
    op.drop_column('owners', 'profile_through')
    op.drop_column('sessions', 'head_at')
