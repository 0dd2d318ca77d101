"""0025 a session's id is its owner's, no longer its tenant's"""

import sqlalchemy as sa
from alembic import op

revision = '0025'
down_revision = '0024'
branch_labels = None
depends_on = None

SEQUENCE = "FROM sqlite_sequence WHERE name = 'sessions'"  # on SQLite: the last id given, also to a row since deleted


def upgrade():
    connection = op.get_bind()
    on_sqlite = connection.dialect.name == 'sqlite'
    last = connection.scalar(sa.text(f'SELECT seq {SEQUENCE}')) if on_sqlite else None
    with op.batch_alter_table('sessions', table_kwargs={'sqlite_autoincrement': True}) as sessions:
        sessions.drop_constraint('uq_sessions_tenant_public_id', type_='unique')
        sessions.drop_index('ix_sessions_owner_id')  # the new constraint's index serves its queries
        sessions.create_unique_constraint('uq_sessions_owner_id_public_id', ['owner_id', 'public_id'])
        sessions.create_index('ix_sessions_tenant_public_id', ['tenant', 'public_id'])
    if last is not None:
        connection.execute(sa.text(f'DELETE {SEQUENCE}'))  # what was written anew counts from the last row that it has
        connection.execute(sa.text("INSERT INTO sqlite_sequence VALUES ('sessions', :last)"), {'last': last})


def downgrade():
    raise RuntimeError('To return to an earlier Recap, restore a backup that it made.')
