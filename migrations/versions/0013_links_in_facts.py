"""0013 the links of a fact in its row"""

import sqlalchemy as sa
from alembic import op

revision = '0013'
down_revision = '0012'
branch_labels = None
depends_on = None

PARTS = ('subject', 'relation', 'object', 'subject_kind', 'object_kind')


def upgrade():
    op.add_column('facts', sa.Column('links', sa.JSON(), nullable=True))
    facts = sa.table('facts', sa.column('id'), sa.column('links', sa.JSON()))
    rows = sa.table('links', *map(sa.column, ('id', 'fact_id', *PARTS)))
    links = {}
    for _, fact_id, *parts in op.get_bind().execute(sa.select(rows).order_by(rows.c.id)):
        links.setdefault(fact_id, []).append(dict(zip(PARTS, parts)))
    for fact_id, found in links.items():
        op.execute(sa.update(facts).where(facts.c.id == fact_id).values(links=found))
    op.drop_table('links')
    linked = sa.text('links IS NOT NULL')
    op.create_index('ix_facts_linked', 'facts', ['owner_id'], sqlite_where=linked, postgresql_where=linked)


def downgrade():
    op.drop_index('ix_facts_linked', 'facts')
    big_id = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')
    op.create_table(
        'links',
        sa.Column('id', big_id, nullable=False),
        sa.Column('owner_id', big_id, nullable=False),
        sa.Column('fact_id', big_id, nullable=False),
        *(sa.Column(name, sa.String(length=100), nullable=False) for name in PARTS[:3]),
        *(sa.Column(name, sa.String(length=16), nullable=False) for name in PARTS[3:]),
        sa.ForeignKeyConstraint(['owner_id'], ['owners.id'], name=op.f('fk_links_owner_id'), ondelete='CASCADE'),
        sa.ForeignKeyConstraint(['fact_id'], ['facts.id'], name=op.f('fk_links_fact_id'), ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_links')),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f('ix_links_owner_id'), 'links', ['owner_id'])
    op.create_index(op.f('ix_links_fact_id'), 'links', ['fact_id'])
    op.drop_column('facts', 'links')
