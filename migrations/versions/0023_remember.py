"""0023 whether a session, and a person, use the memory"""

import sqlalchemy as sa
from alembic import op

revision = '0023'
down_revision = '0022'
branch_labels = None
depends_on = None


def upgrade():
    for table in ('owners', 'sessions'):
        op.add_column(table, sa.Column('remember', sa.Boolean(), nullable=False, server_default=sa.true()))


def downgrade():
    raise RuntimeError('To return to an earlier Recap, restore a backup that it made.')
