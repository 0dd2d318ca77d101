"""0008 versions of messages, and what was said so far of a reply"""

import sqlalchemy as sa
from alembic import op

revision = '0008'
down_revision = '0007'
branch_labels = None
depends_on = None

# Until now branches were only cut off, the later ones with higher numbers.  So the message before a branch is still on
# the line, or on the first later branch that was cut off further up.
FILL = """
UPDATE messages SET replaced_after = coalesce((
    SELECT before.id FROM messages AS before
    WHERE before.session_id = messages.session_id AND before.position = messages.position - 1
        AND (before.branch = 0 OR before.branch > messages.branch)
    ORDER BY CASE WHEN before.branch = 0 THEN 1 ELSE 0 END, before.branch LIMIT 1
), 0)
WHERE branch > 0 AND NOT EXISTS (
    SELECT 1 FROM messages AS earlier
    WHERE earlier.session_id = messages.session_id AND earlier.branch = messages.branch
        AND earlier.position < messages.position
)
"""


def upgrade():
    op.add_column('messages', sa.Column('replaced_after', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True))
    op.execute(FILL)
    op.add_column('turns', sa.Column('so_far', sa.Text(), nullable=True))


def downgrade():
    op.drop_column('turns', 'so_far')
    op.drop_column('messages', 'replaced_after')
