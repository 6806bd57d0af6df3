"""What people state of a change or a version, judged by learned weights.

A sentence is cut into tokens (`tokens.py`), every span that could name a change is a candidate
(`candidates.py`), what stands in and around it becomes features (`features.py`), and one table of weights
says for each candidate how likely it is meant as working, as the thing to leave out, as helping in part, as
tried in vain, or as nothing of the kind (`model.py`). Versions, commits and pull requests get a
first opinion in the same way; boosted trees decide their roles, by the first opinions on all mentions of the
document. The weights are learned by `python -m app.train.statements`.
"""
