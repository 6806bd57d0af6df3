"""The only package that calls GitHub's API: fetch pages, store their records, derive facts."""
