"""0003 facts by successor

Erasing a fact looks for those it superseded; without an index that reads every fact there is, for each one erased.
"""

from alembic import op

revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None


def upgrade():
    with op.batch_alter_table('facts', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_facts_superseded_by'), ['superseded_by'], unique=False)


def downgrade():
    with op.batch_alter_table('facts', schema=None) as batch_op:
        batch_op.drop_index(batch_op.f('ix_facts_superseded_by'))
