"""0012 links between the people, places and things that facts name"""

import sqlalchemy as sa
from alembic import op

revision = '0012'
down_revision = '0011'
branch_labels = None
depends_on = None


def upgrade():
    big_id = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
    op.create_table(
        'links',
        sa.Column('id', big_id, nullable=False),
        sa.Column('owner_id', big_id, nullable=False),
        sa.Column('fact_id', big_id, nullable=False),
        sa.Column('subject', sa.String(length=100), nullable=False),
        sa.Column('relation', sa.String(length=100), nullable=False),
        sa.Column('object', sa.String(length=100), nullable=False),
        sa.Column('subject_kind', sa.String(length=16), nullable=False),
        sa.Column('object_kind', sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(['owner_id'], ['owners.id'], name=op.f('fk_links_owner_id'), ondelete='CASCADE'),
        sa.ForeignKeyConstraint(['fact_id'], ['facts.id'], name=op.f('fk_links_fact_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_links')),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f('ix_links_owner_id'), 'links', ['owner_id'])
    op.create_index(op.f('ix_links_fact_id'), 'links', ['fact_id'])


def downgrade():
    op.drop_table('links')
