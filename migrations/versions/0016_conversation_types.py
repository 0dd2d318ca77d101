"""0016 the types of conversations"""

import sqlalchemy as sa
from alembic import op

revision = '0016'
down_revision = '0015'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('sessions', sa.Column('type', sa.String(length=64), nullable=True))
    op.add_column('sessions', sa.Column('head_type', sa.String(length=64), nullable=True))


def downgrade():
    op.drop_column('sessions', 'head_type')
    op.drop_column('sessions', 'type')
