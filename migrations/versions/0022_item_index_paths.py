"""0022 where queries look in an item, beside its value"""

import sqlalchemy as sa
from alembic import op

revision = '0022'
down_revision = '0021'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('items', sa.Column('index_paths', sa.JSON()))


def downgrade():
    raise RuntimeError('To return to an earlier Recap, restore a backup that it made.')
