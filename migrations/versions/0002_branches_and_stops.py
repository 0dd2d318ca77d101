"""0002 branches and stops

Messages and summaries know the line they belong to, messages what they carry beside their words; a session says whose
turn is to stop, a turn under which lease it is taken.

SQLite can't change a constraint in place: the table of messages is written anew, which `env.py` prepares for.  Going
back erases what the old schema has no room for: replaced messages with their turns, and summaries made from them.
"""

import sqlalchemy as sa
from alembic import op

revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None

MESSAGES = {"table_kwargs": {"sqlite_autoincrement": True}}  # reflection does not see it


def upgrade():
    last = _last_message_id()
    with op.batch_alter_table('messages', schema=None, **MESSAGES) as batch_op:
        batch_op.add_column(sa.Column('branch', sa.Integer(), server_default='0', nullable=False))
        batch_op.add_column(sa.Column('extra', sa.JSON(), nullable=True))
        batch_op.drop_constraint(batch_op.f('uq_messages_session_id_position'), type_='unique')
        batch_op.create_unique_constraint(
            batch_op.f('uq_messages_session_id_branch_position'), ['session_id', 'branch', 'position']
        )
    _reuse_no_id_up_to(last)
    op.add_column('sessions', sa.Column('stop_token', sa.String(length=64), nullable=True))
    op.add_column('summaries', sa.Column('branch', sa.Integer(), server_default='0', nullable=False))
    op.add_column('turns', sa.Column('lease_token', sa.String(length=64), nullable=True))


def downgrade():
    op.execute('DELETE FROM turns WHERE user_message_id IN (SELECT id FROM messages WHERE branch > 0)')
    op.execute('DELETE FROM messages WHERE branch > 0')
    op.execute('DELETE FROM summaries WHERE branch > 0')
    op.drop_column('turns', 'lease_token')
    op.drop_column('summaries', 'branch')
    op.drop_column('sessions', 'stop_token')
    last = _last_message_id()
    with op.batch_alter_table('messages', schema=None, **MESSAGES) as batch_op:
        batch_op.drop_constraint(batch_op.f('uq_messages_session_id_branch_position'), type_='unique')
        batch_op.create_unique_constraint(
            batch_op.f('uq_messages_session_id_position'), ['session_id', 'position']
        )
        batch_op.drop_column('extra')
        batch_op.drop_column('branch')
    _reuse_no_id_up_to(last)


def _last_message_id():
    """The highest id a message ever had, on SQLite, which keeps it by the table and forgets it with the table."""
    if op.get_bind().dialect.name != 'sqlite':
        return None
    return op.get_bind().execute(sa.text("SELECT seq FROM sqlite_sequence WHERE name = 'messages'")).scalar()


def _reuse_no_id_up_to(last):
    if last is not None:
        bind = op.get_bind()
        bind.execute(sa.text("DELETE FROM sqlite_sequence WHERE name = 'messages'"))
        bind.execute(sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES ('messages', :last)"), {"last": last})
