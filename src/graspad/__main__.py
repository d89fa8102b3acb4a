"""`python -m graspad` is the command line."""

from graspad.cli import main

main()
