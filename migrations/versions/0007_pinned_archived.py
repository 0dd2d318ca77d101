"""0007 pinned and archived sessions"""

import sqlalchemy as sa
from alembic import op

revision = '0007'
down_revision = '0006'
branch_labels = None
depends_on = None


def upgrade():
    for name in ('pinned', 'archived'):
        op.add_column('sessions', sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade():
    for name in ('pinned', 'archived'):
        op.drop_column('sessions', name)
