"""Classify what a sentence says about a change or a version, with learned weights.

A sentence is split into tokens (`tokens.py`); every span that could name a change is a candidate
(`candidates.py`); the span and its context become features (`features.py`); and one weight table gives for
each candidate the probabilities that it works, is to be left out, helps in part, failed, or is none of these
(`model.py`). The roles of versions, commits and pull requests are decided in the same way. The weights are
learned by `python -m app.train.statements`.
"""
