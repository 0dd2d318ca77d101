"""0009 the model server that an administrator set"""

import sqlalchemy as sa
from alembic import op

revision = '0009'
down_revision = '0008'
branch_labels = None
depends_on = None


def upgrade():
    op.create_table(
        'model_server',
        sa.Column('id', sa.Integer(), nullable=False),
        sa.Column('base_url', sa.Text(), nullable=False),
        sa.Column('api_key', sa.Text(), nullable=False),
        sa.Column('main', sa.String(256), nullable=False),
        sa.Column('mini', sa.String(256), nullable=False),
        sa.Column('updated_at', sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_model_server'),
    )


def downgrade():
    op.drop_table('model_server')
