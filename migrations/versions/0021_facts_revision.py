"""0021 a revision of each owner's facts, so that a process knows when those it keeps are out of date"""

import sqlalchemy as sa
from alembic import op

revision = '0021'
down_revision = '0020'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('owners', sa.Column('facts_revision', sa.BigInteger(), nullable=False, server_default='0'))


def downgrade():
    raise RuntimeError('To return to an earlier Recap, restore a backup that it made.')
