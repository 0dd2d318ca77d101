"""0006 queues

A job's tenant and round, and how far each tenant's queues have come.  Jobs that wait go on in one round, by age.
"""

import sqlalchemy as sa
from alembic import op

revision = '0006'
down_revision = '0005'
branch_labels = None
depends_on = None

JOBS = sa.table('jobs', sa.column('id'), sa.column('tenant'), sa.column('payload', sa.JSON()))


def upgrade():
    op.create_table(
        'queues',
        sa.Column('kind', sa.String(length=16), nullable=False),
        sa.Column('tenant', sa.String(length=64), nullable=False),
        sa.Column('served', sa.BigInteger(), nullable=False),
        sa.Column('round', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('kind', 'tenant', name=op.f('pk_queues')),
    )
    op.add_column('jobs', sa.Column('tenant', sa.String(length=64), nullable=False, server_default=''))
    op.add_column('jobs', sa.Column('round', sa.Integer(), nullable=False, server_default='0'))
    connection = op.get_bind()
    connection.execute(
        sa.text(
            'UPDATE jobs SET tenant = (SELECT tenant FROM owners WHERE owners.id = jobs.owner_id) '
            'WHERE owner_id IS NOT NULL'
        )
    )
    for job, payload in connection.execute(sa.select(JOBS.c.id, JOBS.c.payload).where(JOBS.c.tenant == '')).all():
        tenant = (payload or {}).get('tenant', 'default')
        connection.execute(JOBS.update().where(JOBS.c.id == job).values(tenant=tenant))
    op.drop_index('ix_jobs_owner_id', 'jobs')
    op.create_index('ix_jobs_queue', 'jobs', ['kind', 'state', 'tenant', 'round', 'run_at', 'id', 'updated_at'])
    op.create_index('ix_jobs_owner_kind', 'jobs', ['owner_id', 'kind', 'round'])
    op.create_index('ix_jobs_tenant', 'jobs', ['tenant', 'id'])


def downgrade():
    connection = op.get_bind()
    ownerless = sa.text('SELECT id, tenant, payload FROM jobs WHERE owner_id IS NULL')
    for job, tenant, payload in connection.execute(ownerless.columns(payload=sa.JSON())).all():
        told = {**(payload or {}), 'tenant': tenant}  # which is where they had it
        connection.execute(JOBS.update().where(JOBS.c.id == job).values(payload=told))
    op.drop_index('ix_jobs_tenant', 'jobs')
    op.drop_index('ix_jobs_owner_kind', 'jobs')
    op.drop_index('ix_jobs_queue', 'jobs')
    op.create_index('ix_jobs_owner_id', 'jobs', ['owner_id'])
    op.drop_column('jobs', 'round')
    op.drop_column('jobs', 'tenant')
    op.drop_table('queues')
