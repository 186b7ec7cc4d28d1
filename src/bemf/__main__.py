"""python -m bemf."""

from bemf.cli import main

if __name__ == "__main__":
    main()
