"""${message}"""

import sqlalchemy as sa
from alembic import op

import models.base

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade():
    ${upgrades if upgrades else "pass"}


def downgrade():
    raise RuntimeError('To return to an earlier Recap, restore a backup that it made.')
