"""0031 what the client that began a session keeps with it"""

import sqlalchemy as sa
from alembic import op

revision = '0031'
down_revision = '0030'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('sessions', sa.Column('client_metadata', sa.JSON()))


def downgrade():
    raise RuntimeError('To return to an earlier Recap, restore a backup that it made.')
