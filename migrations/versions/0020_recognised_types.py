"""0020 the type of a conversation, as the mini model recognised it"""

import sqlalchemy as sa
from alembic import op

revision = '0020'
down_revision = '0019'
branch_labels = None
depends_on = None


def upgrade():
    op.add_column('sessions', sa.Column('recognised_type', sa.String(length=64), nullable=True))


def downgrade():
    op.drop_column('sessions', 'recognised_type')
