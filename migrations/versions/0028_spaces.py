"""0028 the spaces that a key opens"""

import sqlalchemy as sa
from alembic import op

revision = '0028'
down_revision = '0027'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('keys', sa.Column('spaces', sa.JSON()))


def downgrade():
    raise RuntimeError('To return to an earlier Recap, restore a backup that it made.')
