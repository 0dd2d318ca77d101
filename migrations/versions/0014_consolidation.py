"""0014 facts that were merged into others, and up to which fact those of a person were compared"""

import sqlalchemy as sa
from alembic import op

import models

revision = '0014'
down_revision = '0013'
branch_labels = None
depends_on = None


def upgrade():
    big_id = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
    op.add_column('facts', sa.Column('merged', sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column('owners', sa.Column('consolidated_through', big_id, nullable=False, server_default='0'))
    op.add_column('owners', sa.Column('consolidated_at', models.UTCDateTime(), nullable=True))


def downgrade():
    op.drop_column('owners', 'consolidated_at')
    op.drop_column('owners', 'consolidated_through')
    op.drop_column('facts', 'merged')
