"""0017 when sessions were imported"""

import sqlalchemy as sa
from alembic import op

import models

revision = '0017'
down_revision = '0016'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('sessions', sa.Column('imported_at', models.UTCDateTime(), nullable=True))


def downgrade():
    op.drop_column('sessions', 'imported_at')
