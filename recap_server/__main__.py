"""`python -m recap_server`: the command `recap`."""

from recap_server import main

main()
