"""The command line of whatever Headway is on PYTHONPATH: a coordinator or an agent of a version."""

from headway.cli.main import main

if __name__ == "__main__":
    main()
